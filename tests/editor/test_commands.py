"""The code lenses of `gradsmith server`: what they run comes back as diagnostics and edits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from lsprotocol import types

from tests.editor.client import Editor, after
from tests.editor.sources import CUBE, ENDLESS, QUADRATIC, ROUND


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    root = tmp_path_factory.mktemp("workspace")
    (root / "quick").mkdir()
    (root / "quick" / "pyproject.toml").write_text('[tool.gradsmith]\nlevel = "quick"\n')
    with Editor(root) as editor:
        yield editor


def _opened(editor: Editor, name: str, text: str) -> str:
    path = editor.root / name
    path.write_text(text, encoding="utf-8")
    uri = editor.open(path)
    editor.shown(uri)
    return uri


def _until_shown(editor: Editor, uri: str, rule: str) -> types.Diagnostic:
    """The diagnostic of a rule, once it is there."""

    def found() -> list[types.Diagnostic]:
        return [d for d in editor.diagnostics[uri].diagnostics if d.code == rule]

    editor.until(found)
    return found()[0]


def _offer(editor: Editor, uri: str, where: types.Range, words: str) -> types.WorkspaceEdit:
    (action,) = (a for a in editor.actions(uri, where) if words in a.title)
    assert action.edit is not None
    return action.edit


def test_a_refuted_gradient_is_shown_at_its_line_with_its_repair_and_goes_with_the_class(editor: Editor) -> None:
    uri = _opened(editor, "cube.py", CUBE)
    answer = editor.pressed(uri, "check gradient")
    assert answer["verdict"] == "refuted" and "Cube: refuted (wrong-gradient)" in editor.messages
    wrong = _until_shown(editor, uri, "wrong-gradient")
    assert wrong.severity == types.DiagnosticSeverity.Error and wrong.range.start.line == 12
    repaired = after(CUBE, _offer(editor, uri, wrong.range, " [wrong-gradient]"))
    assert repaired == CUBE.replace("2 * x**2", "3 * x**2")
    assert [lens.command.title for lens in editor.lenses(uri) if lens.command] == [
        "check gradient (refuted)",
        "derive backward",
    ]
    # Elsewhere the text may change: the class is the same, and so is what a check said of it.
    editor.replace(uri, 2, f"# one line more\n{CUBE}")
    assert [d.range.start.line for d in editor.shown(uri, 2) if d.code == "wrong-gradient"] == [13]
    editor.replace(uri, 3, repaired)
    assert "wrong-gradient" not in [d.code for d in editor.shown(uri, 3)]
    assert next(lens.command.title for lens in editor.lenses(uri) if lens.command) == "check gradient"


def test_a_derived_backward_comes_as_an_edit_of_the_open_version(editor: Editor) -> None:
    uri = _opened(editor, "my größe.py", CUBE)
    assert editor.pressed(uri, "derive backward")["applied"]
    params = editor.applied.pop()
    assert params.label == "derive backward of Cube" and params.edit.document_changes is not None
    assert [d.text_document.version for d in params.edit.document_changes if hasattr(d, "text_document")] == [1]
    names: dict[str, object] = {}
    exec(compile(after(CUBE, params.edit), "derived.py", "exec"), names)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(names["Cube"].apply, (x,))  # type: ignore[attr-defined]


def test_what_is_not_saved_is_not_run(editor: Editor) -> None:
    uri = _opened(editor, "unsaved.py", CUBE)
    editor.replace(uri, 2, CUBE.replace("2 *", "3 *"))
    for title in ("check gradient", "derive backward"):
        assert editor.pressed(uri, title)["refused"].startswith("Save unsaved.py first")
    (editor.root / "unsaved.py").write_text(CUBE.replace("2 *", "3 *"))
    nobody = types.Command("check", "gradsmith.check", arguments=[uri, "Nobody"])
    assert editor.command(nobody)["refused"] == "unsaved.py has no Function of this name."


def test_cancelling_ends_what_runs_and_leaves_the_server_at_work(editor: Editor) -> None:
    uri = _opened(editor, "endless.py", ENDLESS)
    command = editor.lenses(uri)[0].command
    assert command is not None
    request, future = editor.begin(command)
    started = editor.root / "started"
    editor.poll(lambda: started.exists() and started.read_text())
    process = Path(f"/proc/{started.read_text()}")
    assert process.exists()
    editor.cancel(request)
    editor.poll(lambda: not process.exists())
    assert future.cancelled() or future.exception() is not None or future.result()["cancelled"]
    editor.replace(uri, 2, CUBE)
    assert editor.shown(uri, 2) == [] and editor.lenses(uri)


def test_an_editor_that_ends_ends_what_runs(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        uri = _opened(editor, "endless.py", ENDLESS)
        command = editor.lenses(uri)[0].command
        assert command is not None
        editor.begin(command)
        started = tmp_path / "started"
        editor.poll(lambda: started.exists() and started.read_text())
    process = Path(f"/proc/{started.read_text()}")
    editor.poll(lambda: not process.exists())
    assert editor.status == 0


@pytest.mark.deep
def test_an_assumption_is_accepted_by_a_comment(editor: Editor) -> None:
    uri = _opened(editor, "form.py", QUADRATIC)
    assert editor.pressed(uri, "check gradient")["verdict"] == "verified"
    assumed = _until_shown(editor, uri, "assumes")
    edit = _offer(editor, uri, assumed.range, "accept the assumption")
    accepted = after(QUADRATIC, edit)
    assert "# gradsmith: assumes[matrix is symmetric]\nclass QuadraticForm" in accepted
    (editor.root / "form.py").write_text(accepted)
    editor.replace(uri, 2, accepted)
    answer = editor.pressed(uri, "check gradient")
    assert answer["verdict"] == "verified" and "assumes" not in [f["rule"] for f in answer["findings"]]


@pytest.mark.deep
def test_a_surrogate_is_declared_by_a_comment(editor: Editor) -> None:
    uri = _opened(editor, "quick/round.py", ROUND)
    assert editor.pressed(uri, "check gradient")["verdict"] == "unverified"
    found = _until_shown(editor, uri, "undeclared-surrogate")
    edit = _offer(editor, uri, found.range, "declare a surrogate")
    declared = after(ROUND, edit)
    assert "# gradsmith: surrogate[straight-through]\nclass Round" in declared
    (editor.root / "quick/round.py").write_text(declared)
    editor.replace(uri, 2, declared)
    assert editor.pressed(uri, "check gradient")["verdict"] == "verified"


@pytest.mark.deep
def test_a_function_of_a_notebook_is_checked_and_derived_in_its_cell(editor: Editor) -> None:
    cells = ["import torch", CUBE.split("\n\n\n")[1], 'print("never run")']
    path = editor.root / "quick" / "book.ipynb"
    kinds = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": []} for c in cells]
    path.write_text(json.dumps({"cells": kinds, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    uris = [f"vscode-notebook-cell:/book.ipynb#{n}" for n in range(3)]
    book = types.NotebookDocument(
        path.as_uri(), "jupyter-notebook", 1, [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris]
    )
    documents = [types.TextDocumentItem(uri, "python", 1, text) for uri, text in zip(uris, cells)]
    editor.on_loop(editor.client.notebook_document_did_open, types.DidOpenNotebookDocumentParams(book, documents))
    editor.shown(uris[1])
    assert editor.pressed(uris[1], "check gradient")["verdict"] == "refuted"
    wrong = _until_shown(editor, uris[1], "wrong-gradient")
    assert wrong.range.start.line == 9
    assert editor.pressed(uris[1], "derive backward")["applied"]
    edit = editor.applied.pop().edit
    assert edit.document_changes is not None
    assert [d.text_document.uri for d in edit.document_changes if hasattr(d, "text_document")] == [uris[1]]
    assert "3 *" in after(cells[1], edit)
