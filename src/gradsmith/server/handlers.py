"""Which message of the protocol leads to what."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from gradsmith.findings import GradsmithError
from gradsmith.server import showing
from gradsmith.server.app import ACTIONS, PROJECT_FILES, Server, able
from gradsmith.server.documents import Documents, OpenDocument, source_of

_RESOLVING = ("text_document", "code_action", "resolve_support")


def register(server: Server) -> None:
    """Have the server answer."""
    _starting(server)
    _documents(server)
    _notebooks(server)
    _questions(server)
    _commands(server)


def _starting(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        known = server.workspace
        folders = list(known.folders.values())
        kind = types.TextDocumentSyncKind.Incremental
        server.protocol._workspace = Documents(known.root_uri, kind, folders, known.position_encoding)

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        watching = getattr(server.client_capabilities.workspace, "did_change_watched_files", None)
        if watching is not None and watching.dynamic_registration:
            files = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(PROJECT_FILES)])
            wish = types.Registration("gradsmith", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, files)
            await server.client_register_capability_async(types.RegistrationParams([wish]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def settings_changed(params: types.DidChangeWatchedFilesParams) -> None:
        for uri in list(server.sources):
            server.changed(uri)

    @server.feature(types.SHUTDOWN)
    def shutdown(params: Any) -> None:
        for task in list(server.running.values()):
            task.cancel()
        # pygls 2.1 cancels the other requests while it goes through them, and fails where one of them is dropped thereby.
        own, waiting = server.protocol.msg_id, server.protocol._request_futures
        for number, future in list(waiting.items()):
            if number != own:
                future.cancel()


def _documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.open(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)


def _notebooks(server: Server) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        server.open(params.notebook_document.uri, [cell.document for cell in params.notebook_document.cells])

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        book, source = server.workspace.get_notebook_document(notebook_uri=uri), server.sources.get(uri)
        if book is not None and source is not None:
            source.cells = [cell.document for cell in book.cells]
            server.changed(uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseNotebookDocumentParams) -> None:
        server.close(params.notebook_document.uri)


def _questions(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, ACTIONS)
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        source = source_of(server.sources, params.text_document.uri)
        return [] if source is None else await _actions(server, source, params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await _resolved(server, action)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        source = source_of(server.sources, uri)
        if source is None:
            return None
        lines, number, at = source.lines(uri), source.number(uri), params.position
        here = [(f, r) for f in source.findings if f.cell == number and _holds(r := showing.range_of(f, lines), at)]
        rules = list(dict.fromkeys(finding.rule for finding, _ in here))
        column = lines.column(at.line, at.character)
        page = await server.linter.ask(
            do="page", text=lines.line(at.line), line=at.line + 1, column=column, rules=rules
        )
        if page is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page), here[0][1] if here else None)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        source = source_of(server.sources, uri)
        if source is None:
            return []
        await server.settled(source)
        return showing.lenses(source, uri)


def _commands(server: Server) -> None:
    @server.command(showing.CHECK)
    async def check(uri: str, name: str) -> dict[str, Any]:
        return await server.run("check", uri, name)

    @server.command(showing.DERIVE)
    async def derive(uri: str, name: str) -> dict[str, Any]:
        return await server.run("derive", uri, name)


async def _actions(server: Server, source: OpenDocument, params: types.CodeActionParams) -> list[types.CodeAction]:
    await server.settled(source)
    wanted = params.context.only
    found = await _quick_fixes(server, source, params) if _is_wanted(types.CodeActionKind.QuickFix, wanted) else []
    fixable = any(f.edits and f.applicability == "safe" for f in source.findings)
    if fixable and _is_wanted(types.CodeActionKind.SourceFixAll, wanted):
        everything = types.CodeAction(
            "Fix all that is safe to fix", types.CodeActionKind.SourceFixAll, data={"uri": source.uri}
        )
        # An editor asks at every move of the cursor, and this one lints again and again: only whoever wants it waits.
        later = not wanted and able(server.client_capabilities, *_RESOLVING)
        found.append(everything if later else await _resolved(server, everything))
    return found


async def _quick_fixes(server: Server, source: OpenDocument, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    lines, number = source.lines(uri), source.number(uri)
    chosen = [f for f in source.findings if f.cell == number and _meet(showing.range_of(f, lines), params.range)]
    if not chosen:
        return []
    try:
        offers = await server.linter.ask(
            do="actions", path=source.path, text=source.text(), findings=[f.to_dict() for f in chosen]
        )
    except GradsmithError:  # told with the diagnostics
        return []
    found = []
    for offer in offers:
        settled = {chosen[each].fingerprint for each in offer["findings"]}
        settles = [d for d in params.context.diagnostics if _fingerprint(d) in settled]
        edit = showing.workspace_edit(source, offer["edits"])
        kind, preferred = types.CodeActionKind.QuickFix, offer["preferred"] or None
        found.append(types.CodeAction(offer["title"], kind, settles or None, preferred, edit=edit))
    return found


async def _resolved(server: Server, action: types.CodeAction) -> types.CodeAction:
    """The action that fixes everything, with its edits."""
    source = server.sources.get(action.data["uri"]) if isinstance(action.data, dict) else None
    if source is not None:
        await server.settled(source)
        with contextlib.suppress(GradsmithError):  # told with the diagnostics
            edits = await server.linter.ask(do="fix all", path=source.path, text=source.text())
            action.edit = showing.workspace_edit(source, edits)
    return action


def _is_wanted(kind: types.CodeActionKind, wanted: Sequence[types.CodeActionKind | str] | None) -> bool:
    names = [str(getattr(only, "value", only)) for only in wanted or ()]
    return not names or any(kind.value == name or kind.value.startswith(f"{name}.") for name in names)


def _fingerprint(diagnostic: types.Diagnostic) -> str | None:
    return diagnostic.data.get("fingerprint") if isinstance(diagnostic.data, dict) else None


def _holds(where: types.Range, at: types.Position) -> bool:
    return _pair(where.start) <= _pair(at) <= _pair(where.end)


def _meet(one: types.Range, other: types.Range) -> bool:
    return _pair(one.start) <= _pair(other.end) and _pair(other.start) <= _pair(one.end)


def _pair(position: types.Position) -> tuple[int, int]:
    return position.line, position.character
