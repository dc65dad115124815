"""A real editor's end of the protocol: `gradsmith server` as a process, spoken to over its standard streams."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
PATIENCE = 120.0  # seconds: only against waiting for ever


class Editor:
    """Starts the server, and remembers what it is told. Every call waits for its answer."""

    def __init__(
        self, root: Path, encodings: list[types.PositionEncodingKind] | None = None, **environment: str
    ) -> None:
        self.root = root
        self.encodings = encodings
        self.diagnostics: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.progress: list[Any] = []
        self.applied: list[types.ApplyWorkspaceEditParams] = []
        self.registered: list[str] = []
        self.accepts = True
        self.environment = environment
        self._loop = asyncio.new_event_loop()
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client = LanguageClient("editor", "1")
        self._listen()

    def __enter__(self) -> Editor:
        import os

        environment = {**os.environ, **self.environment}
        command = (sys.executable, "-m", "gradsmith", "server")
        self.wait(self.client.start_io(*command, cwd=str(self.root), env=environment))
        self.capabilities = self.wait(self.client.initialize_async(self._wishes())).capabilities
        self.client.initialized(types.InitializedParams())
        return self

    def __exit__(self, *_: object) -> None:
        process = self.client._server
        assert process is not None
        if process.returncode is None:
            self.wait(self.client.shutdown_async(None))
            self.on_loop(self.client.exit, None)
        self.wait(self.client.stop())
        self.status = process.returncode
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wishes(self) -> types.InitializeParams:
        watched = types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        lenses = types.CodeLensWorkspaceClientCapabilities(refresh_support=True)
        resolving = types.ClientCodeActionResolveOptions(properties=["edit"])
        actions = types.CodeActionClientCapabilities(data_support=True, resolve_support=resolving)
        workspace = types.WorkspaceClientCapabilities(did_change_watched_files=watched, code_lens=lenses)
        window = types.WindowClientCapabilities(work_done_progress=True)
        document = types.TextDocumentClientCapabilities(code_action=actions)
        general = types.GeneralClientCapabilities(position_encodings=self.encodings)
        able = types.ClientCapabilities(workspace=workspace, window=window, general=general, text_document=document)
        return types.InitializeParams(capabilities=able, root_uri=self.root.as_uri())

    def _listen(self) -> None:
        client = self.client

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            with self._news:
                self.diagnostics[params.uri] = params
                self._news.notify_all()

        @client.feature(types.WINDOW_SHOW_MESSAGE)
        def message(params: types.ShowMessageParams) -> None:
            with self._news:
                self.messages.append(params.message)
                self._news.notify_all()

        @client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create(params: types.WorkDoneProgressCreateParams) -> None:
            self.token = params.token

        @client.feature(types.PROGRESS)
        def progress(params: types.ProgressParams) -> None:
            with self._news:
                self.progress.append(params.value)
                self._news.notify_all()

        @client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.applied.append(params)
            return types.ApplyWorkspaceEditResult(applied=self.accepts)

        @client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            with self._news:
                self.registered += [one.method for one in params.registrations]
                self._news.notify_all()

        @client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def refresh(params: Any) -> None:
            pass

    # Calls

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def on_loop(self, call: Any, *args: Any) -> None:
        async def called() -> None:
            call(*args)

        self.wait(called())

    def until(self, holds: Any) -> None:
        """Wait until something is so."""
        with self._news:
            assert self._news.wait_for(holds, PATIENCE), "it never came"

    def poll(self, holds: Any) -> None:
        """Wait until something is so that nobody tells: a file, or a process."""
        begin = time.monotonic()
        while not holds():
            assert time.monotonic() - begin < PATIENCE, "it never came"
            time.sleep(0.02)

    def open(self, path: Path, text: str | None = None, language: str = "python") -> str:
        uri = path.as_uri()
        content = path.read_text(encoding="utf-8") if text is None else text
        item = types.TextDocumentItem(uri, language, 1, content)
        self.on_loop(self.client.text_document_did_open, types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, version: int, *changes: types.TextDocumentContentChangeEvent) -> None:
        document = types.VersionedTextDocumentIdentifier(version, uri)
        params = types.DidChangeTextDocumentParams(document, list(changes))
        self.on_loop(self.client.text_document_did_change, params)

    def replace(self, uri: str, version: int, text: str) -> None:
        self.change(uri, version, types.TextDocumentContentChangeWholeDocument(text))

    def shown(self, uri: str, version: int | None = 1) -> list[types.Diagnostic]:
        """What is shown for this version of a document, once it is there."""
        self.until(lambda: uri in self.diagnostics and self.diagnostics[uri].version == version)
        return list(self.diagnostics[uri].diagnostics)

    def actions(self, uri: str, where: types.Range, only: list[str] | None = None) -> list[types.CodeAction]:
        shown = list(self.diagnostics[uri].diagnostics)
        context = types.CodeActionContext(shown, only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, context)
        return list(self.wait(self.client.text_document_code_action_async(params)) or [])

    def resolved(self, action: types.CodeAction) -> types.CodeAction:
        return self.wait(self.client.code_action_resolve_async(action))

    def hover(self, uri: str, line: int, character: int) -> types.Hover | None:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        return self.wait(self.client.text_document_hover_async(params))

    def lenses(self, uri: str) -> list[types.CodeLens]:
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        return list(self.wait(self.client.text_document_code_lens_async(params)) or [])

    def command(self, command: types.Command) -> Any:
        params = types.ExecuteCommandParams(command.command, command.arguments)
        return self.wait(self.client.workspace_execute_command_async(params))

    def pressed(self, uri: str, title: str) -> Any:
        """Press the code lens with this title, and wait for what comes of it."""
        (command,) = (c for lens in self.lenses(uri) if (c := lens.command) and c.title.startswith(title))
        return self.command(command)

    def cancel(self, request: str) -> None:
        self.on_loop(self.client.protocol.notify, types.CANCEL_REQUEST, types.CancelParams(request))

    def begin(self, command: types.Command) -> Any:
        """A command that is not waited for: (id of the request, its future)."""
        params = types.ExecuteCommandParams(command.command, command.arguments)

        async def sent() -> Any:
            return self.client.protocol.send_request(types.WORKSPACE_EXECUTE_COMMAND, params, msg_id="running")

        return "running", self.wait(sent())


def after(text: str, edit: types.WorkspaceEdit) -> str:
    """A text after the edits of its one document, by counting units of UTF-16 as editors do."""
    assert edit.document_changes is not None
    (document,) = edit.document_changes
    assert isinstance(document, types.TextDocumentEdit)
    units = text.encode("utf-16-le")
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(f"{line}\n".encode("utf-16-le")))
    spans = sorted(
        (
            (
                starts[e.range.start.line] + 2 * e.range.start.character,
                starts[e.range.end.line] + 2 * e.range.end.character,
                e.new_text,
            )
            for e in document.edits
            if isinstance(e, types.TextEdit)
        ),
        reverse=True,
    )
    for start, end, new in spans:
        units = units[:start] + new.encode("utf-16-le") + units[end:]
    return units.decode("utf-16-le")
