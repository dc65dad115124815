"""The server: what each message of the protocol leads to. All it knows is in `documents.py`; who works is in the other files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import to_fs_path

from gradsmith.about import VERSION
from gradsmith.findings import Finding, GradsmithError, Report
from gradsmith.report.place import place
from gradsmith.report.verdicts import word
from gradsmith.server import showing
from gradsmith.server.documents import Checked, Documents, OpenDocument, path_of, source_of
from gradsmith.server.lint_process import LintProcess
from gradsmith.server.work import work

_CELLS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(cells=[types.NotebookCellLanguage(language="python")]),
    ],
    save=True,
)
ACTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll], resolve_provider=True
)
PROJECT_FILES = "**/pyproject.toml"


class Protocol(LanguageServerProtocol):
    """pygls' own, with documents that count as the protocol does; cancelling a request ends what it started."""

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        server = self._server
        if isinstance(server, Server) and (running := server.running.get(msg_id)) is not None:
            running.cancel()
        super()._handle_cancel_notification(msg_id)


class Server(LanguageServer):
    """All open sources, the linter, and what is being run."""

    def __init__(self, linter: LintProcess) -> None:
        super().__init__("gradsmith", VERSION, notebook_document_sync=_CELLS, protocol_cls=Protocol)
        self.linter = linter
        self.sources: dict[str, OpenDocument] = {}
        self.running: dict[int | str | None, asyncio.Task[Any]] = {}
        self.told: set[str] = set()  # troubles that the user knows of
        self._one_at_a_time = asyncio.Lock()

    # Documents

    def open(self, uri: str, cells: list[str] | None = None) -> None:
        documents = self.workspace
        assert isinstance(documents, Documents)
        source = OpenDocument(uri, path_of(uri, is_notebook=cells is not None), documents, cells)
        if source.is_python:
            self.sources[uri] = source
            self.changed(uri)

    def changed(self, uri: str) -> None:
        """Lint it again, as soon as the linter is free; of changes that come meanwhile only the last one counts."""
        source = source_of(self.sources, uri)
        if source is None:
            return
        source.dirty = True
        if source.linting is None:
            source.linting = asyncio.ensure_future(self._lint(source))

    def close(self, uri: str) -> None:
        source = self.sources.pop(uri, None)
        for each in source.published if source is not None else ():
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(each, []))

    async def _lint(self, source: OpenDocument) -> None:
        try:
            while source.dirty and source.uri in self.sources:
                source.dirty = False
                checked = [one.to_dict() for one in source.checked.values()]
                try:
                    answer = await self.linter.ask(do="lint", path=source.path, text=source.text(), checked=checked)
                except GradsmithError as error:
                    answer = {"findings": [], "skipped": [str(error)], "functions": [], "kept": [], "trouble": ""}
                if not source.dirty and source.uri in self.sources:
                    source.take(answer)
                    self.tell_once(answer["trouble"])
                    self.publish(source)
        finally:
            source.linting = None

    async def settled(self, source: OpenDocument) -> None:
        """Wait until the text that is open now has been linted: what is asked about it is asked about this text."""
        while source.linting is not None:
            await asyncio.shield(source.linting)

    def publish(self, source: OpenDocument) -> None:
        shown = showing.diagnostics(source)
        source.published = {uri for uri, found in shown.items() if found}
        for uri, found in shown.items():
            version = self.workspace.get_text_document(uri).version
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    # Commands

    async def run(self, do: str, uri: str, name: str) -> dict[str, Any]:
        """Check or derive one Function of a file, and show what came of it. Whoever waits may cancel."""
        source = source_of(self.sources, uri)
        trouble = f"{uri} is not open as a Python file." if source is None else source.unsaved()
        if source is None or trouble:
            self.tell(trouble or "", types.MessageType.Warning)
            return {"refused": trouble}
        request = self.protocol.msg_id
        self.running[request] = task = asyncio.ensure_future(self._worked(do, source, name))
        try:
            return await task
        except asyncio.CancelledError:
            return {"cancelled": True}
        except GradsmithError as error:
            self.tell(f"{name}: {error}", types.MessageType.Warning)
            return {"refused": str(error)}
        finally:
            self.running.pop(request, None)

    async def _worked(self, do: str, source: OpenDocument, name: str) -> dict[str, Any]:
        stood = next((f for f in source.functions if f["name"] == name), None)
        if stood is None:
            raise GradsmithError(f"{os.path.basename(source.path)} has no Function of this name.")
        before = source.text()
        async with self._progress(f"gradsmith {do} {name}") as tell, self._one_at_a_time:
            task = {"do": do, "path": source.path, "name": name}
            done = await work(task, self._folder(source), tell)
        if source.text() != before:
            raise GradsmithError("the text has changed meanwhile; run it again.")
        return await (self._took_check if do == "check" else self._took_edits)(source, stood, done)

    async def _took_check(self, source: OpenDocument, stood: dict[str, Any], done: dict[str, Any]) -> dict[str, Any]:
        report = Report.from_dict(done)
        subject = next((s for s in report.subjects if s.name == stood["name"]), None)
        if subject is None:
            raise GradsmithError("the check came to no verdict.")
        found = [_here(f, source, stood).to_dict() for f in report.findings if "check" in f.lenses]
        source.checked[subject.name] = Checked(stood, subject.verdict, subject.reason, found)
        self.changed(source.uri)
        words = f"{subject.name}: {word(subject.verdict)}" + (f" ({subject.reason})" if subject.reason else "")
        self.tell(words, types.MessageType.Info)
        if able(self.client_capabilities, "workspace", "code_lens", "refresh_support"):
            self.workspace_code_lens_refresh(None)
        return {"verdict": subject.verdict, "reason": subject.reason, "findings": found}

    async def _took_edits(self, source: OpenDocument, stood: dict[str, Any], done: dict[str, Any]) -> dict[str, Any]:
        edits = done["edits"]
        edit = showing.workspace_edit(source, edits)
        label = f"derive backward of {stood['name']}"
        answer = await self.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label))
        return {"applied": answer.applied, "edits": edits}

    @contextlib.asynccontextmanager
    async def _progress(self, title: str) -> Any:
        """Shows what is tried, where the editor can show it; its cancel button ends the work."""
        if not able(self.client_capabilities, "window", "work_done_progress"):
            yield lambda words: None
            return
        token, bar, task = str(uuid.uuid4()), self.work_done_progress, asyncio.current_task()
        await bar.create_async(token)
        loop = asyncio.get_running_loop()
        bar.tokens[token].add_done_callback(lambda _: loop.call_soon_threadsafe(task.cancel) if task else None)
        bar.begin(token, types.WorkDoneProgressBegin(title, cancellable=True))
        try:
            yield lambda words: bar.report(token, types.WorkDoneProgressReport(message=words))
        finally:
            bar.end(token, types.WorkDoneProgressEnd())
            bar.tokens.pop(token, None)

    def _folder(self, source: OpenDocument) -> str:
        """Where a user would call `gradsmith check`: the root of the workspace that holds the file."""
        own = os.path.dirname(source.path)
        roots = [to_fs_path(folder.uri) for folder in self.workspace.folders.values()] or [self.workspace.root_path]
        around = [root for root in roots if root and os.path.isdir(root) and PurePath(own).is_relative_to(root)]
        return max(around, key=len, default=own)

    # Words

    def tell(self, text: str, kind: types.MessageType) -> None:
        self.window_show_message(types.ShowMessageParams(type=kind, message=text))

    def tell_once(self, trouble: str) -> None:
        if trouble and trouble not in self.told:
            self.told.add(trouble)
            self.tell(trouble, types.MessageType.Warning)


def _here(finding: Finding, source: OpenDocument, stood: dict[str, Any]) -> Finding:
    """A finding of a check, on a line of this file: one that points elsewhere stands at the class, and says where."""
    if finding.path is None or os.path.realpath(finding.path) == os.path.realpath(source.path):
        return replace(
            finding, path=source.path, line=finding.line or stood["line"], cell=finding.cell or stood["cell"]
        )
    moved = replace(finding, message=f"{finding.message} ({place(finding)})", path=source.path, line=stood["line"])
    return replace(moved, column=0, end_line=None, end_column=None, cell=stood["cell"], edits=(), applicability=None)


def able(capabilities: Any, *names: str) -> bool:
    """Whether the editor says that it can do something."""
    for name in names:
        capabilities = getattr(capabilities, name, None)
    return bool(capabilities)
