"""`gradsmith server` as an editor uses it while somebody types: a real process, spoken to over its streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types

import gradsmith as gs
from tests.editor.client import Editor, after
from tests.editor.sources import SWISH

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "benchmarks"))


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with Editor(tmp_path_factory.mktemp("workspace")) as editor:
        yield editor


def _where(found: list[types.Diagnostic], rule: str) -> types.Range:
    return next(d.range for d in found if d.code == rule)


def test_what_is_typed_is_linted_as_the_command_line_lints_it(editor: Editor) -> None:
    path = editor.root / "typed.py"
    uri = editor.open(path, SWISH)
    shown = editor.shown(uri)
    fresh = gs.lint_source(SWISH, str(path)).findings
    assert [(d.range.start.line + 1, d.code) for d in shown] == [(f.line, f.rule) for f in fresh]
    assert _where(shown, "inplace-grad").start == types.Position(14, 8)
    editor.replace(uri, 2, SWISH.replace("grad_output.mul_(s)", "grad_output = grad_output * s"))
    assert "inplace-grad" not in [d.code for d in editor.shown(uri, 2)]
    editor.replace(uri, 3, "class Half(")
    (trouble,) = editor.shown(uri, 3)
    assert "syntax error" in trouble.message and trouble.severity == types.DiagnosticSeverity.Information


def test_columns_are_units_of_utf16_and_edits_fit_them(editor: Editor) -> None:
    text = SWISH.replace("grad_output.mul_(s)", "note = 'größer 😋😋'; grad_output.mul_(s)")
    uri = editor.open(editor.root / "wide.py", text)
    where = _where(editor.shown(uri), "inplace-grad")
    assert where.start == types.Position(14, 8 + len("note = 'größer 😋😋'; ".encode("utf-16-le")) // 2)
    start = types.Position(14, where.start.character)
    end = types.Position(14, where.start.character + len("grad_output"))
    change = types.TextDocumentContentChangePartial(types.Range(start, end), "grad_output.clone()")
    editor.change(uri, 2, change)
    assert "inplace-grad" not in [d.code for d in editor.shown(uri, 2)]


def test_another_encoding_may_be_agreed_on(tmp_path: Path) -> None:
    text = SWISH.replace("grad_output.mul_(s)", "note = 'é😋'; grad_output.mul_(s)")
    with Editor(tmp_path, [types.PositionEncodingKind.Utf8]) as editor:
        assert editor.capabilities.position_encoding == types.PositionEncodingKind.Utf8
        uri = editor.open(tmp_path / "wide.py", text)
        assert _where(editor.shown(uri), "inplace-grad").start.character == 8 + len("note = 'é😋'; ".encode())


def test_quick_fixes_and_comments(editor: Editor) -> None:
    path = editor.root / "fixed.py"
    text = SWISH.replace("        grad_output.mul_(s)\n", "        grad_output.mul_(s)  # 😋\n")
    uri = editor.open(path, text)
    where = _where(editor.shown(uri), "inplace-grad")
    actions = editor.actions(uri, where)
    fix = next(a for a in actions if a.is_preferred)
    assert fix.edit is not None and fix.diagnostics
    fixed = after(text, fix.edit)
    assert "grad_output = grad_output.clone()\n        grad_output.mul_(s)" in fixed
    assert "inplace-grad" not in [f.rule for f in gs.lint_source(fixed).findings]
    ignore = next(a for a in actions if a.title.startswith("ignore here"))
    assert ignore.edit is not None
    assert "mul_(s)  # 😋  # gradsmith: ignore[inplace-grad]\n" in after(text, ignore.edit)
    everything = editor.actions(uri, where, ["source.fixAll"])
    assert [a.kind for a in everything] == ["source.fixAll"]
    assert everything[0].edit is not None
    assert after(text, everything[0].edit) == gs.fix_source(text, str(path)).files[0].after.decode()
    # Without asking for it, the menu has it, too; its edits are made only when it is chosen.
    later = next(a for a in actions if a.kind == "source.fixAll")
    assert later.edit is None and editor.resolved(later).edit == everything[0].edit


def test_the_page_of_a_rule_stands_in_the_hover(editor: Editor) -> None:
    text = SWISH.replace("return x * s", "return x * s  # gradsmith: ignore[unused-output]")
    uri = editor.open(editor.root / "hovered.py", text)
    where = _where(editor.shown(uri), "inplace-grad")
    page = editor.hover(uri, where.start.line, where.start.character + 2)
    assert page is not None and isinstance(page.contents, types.MarkupContent)
    assert page.contents.value.startswith("### inplace-grad") and "Why it matters" in page.contents.value
    line = text.split("\n")[9]
    named = editor.hover(uri, 9, line.index("unused-output") + 3)
    assert named is not None and isinstance(named.contents, types.MarkupContent)
    assert named.contents.value.startswith("### unused-output")
    assert editor.hover(uri, 0, 2) is None


def test_lenses_stand_above_every_function(editor: Editor) -> None:
    uri = editor.open(editor.root / "lenses.py", "# a line\n" + SWISH)
    lenses = editor.lenses(uri)
    titles = [(lens.range.start.line, lens.command.title) for lens in lenses if lens.command is not None]
    assert titles == [(5, "check gradient"), (5, "derive backward")]


def test_the_settings_of_the_project_count(editor: Editor) -> None:
    folder = editor.root / "project"
    (folder / "vendor").mkdir(parents=True)
    settings = folder / "pyproject.toml"
    settings.write_text('[tool.gradsmith]\nignore = ["inplace-grad"]\nexclude = ["vendor"]\n')
    uri = editor.open(folder / "ops.py", SWISH)
    assert "inplace-grad" not in [d.code for d in editor.shown(uri)]
    excluded = editor.open(folder / "vendor" / "ops.py", SWISH)
    assert editor.shown(excluded) == []
    editor.until(lambda: "workspace/didChangeWatchedFiles" in editor.registered)
    settings.write_text('[tool.gradsmith]\nignored = ["inplace-grad"]\n')
    change = types.DidChangeWatchedFilesParams([types.FileEvent(settings.as_uri(), types.FileChangeType.Changed)])
    editor.on_loop(editor.client.workspace_did_change_watched_files, change)
    editor.until(lambda: any("has no key 'ignored'" in message for message in editor.messages))
    editor.until(lambda: "inplace-grad" in [d.code for d in editor.diagnostics[uri].diagnostics])


def test_what_is_closed_is_not_shown_any_more(editor: Editor) -> None:
    uri = editor.open(editor.root / "closed.py", SWISH)
    assert editor.shown(uri)
    document = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
    editor.on_loop(editor.client.text_document_did_close, document)
    assert editor.shown(uri, None) == []


def test_other_languages_are_left_alone(editor: Editor) -> None:
    uri = editor.open(editor.root / "notes.md", SWISH, "markdown")
    assert editor.lenses(uri) == [] and uri not in editor.diagnostics


def test_a_text_that_ends_the_parser_costs_one_answer(editor: Editor) -> None:
    uri = editor.open(editor.root / "deep.py", SWISH + "x = " + "-" * 200_000 + "1\n")
    assert [d for d in editor.shown(uri) if d.message.startswith("Not linted")]
    editor.replace(uri, 2, SWISH)
    assert "inplace-grad" in [d.code for d in editor.shown(uri, 2)]


def test_typing_imports_no_torch_and_runs_nothing(tmp_path: Path) -> None:
    trap = tmp_path / "torch"
    trap.mkdir()
    (trap / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    bad = tmp_path / "bad.py"
    text = SWISH + f"\nopen({str(tmp_path / 'executed')!r}, 'w').close()\n"
    bad.write_text(text)
    with Editor(tmp_path, PYTHONPATH=str(tmp_path)) as editor:
        uri = editor.open(bad)
        where = _where(editor.shown(uri), "inplace-grad")
        assert editor.actions(uri, where) and editor.lenses(uri) and editor.hover(uri, 14, 10)
    assert not (tmp_path / "imported").exists() and not (tmp_path / "executed").exists()


def test_without_its_library_the_server_says_so_in_one_sentence() -> None:
    hidden = "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n: None if n == 'pygls' else f(n)"
    called = "import sys; sys.argv = ['gradsmith', 'server']\nfrom gradsmith.cli import main; main()"
    command = [sys.executable, "-c", f"{hidden}\n{called}"]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr.count("\n") == 1 and "pip install 'pygls" in ended.stderr


def test_random_edits_leave_what_a_fresh_lint_finds() -> None:
    from server import replay

    compared, findings = replay(60, seed=3, every=20)
    assert compared == 3 and findings > 0


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, 1])
def test_a_thousand_random_edits_leave_what_a_fresh_lint_finds(seed: int) -> None:
    from server import replay

    compared, findings = replay(1000, seed)
    assert compared == 20 and findings > 100


def test_a_notebook_is_linted_cell_by_cell(editor: Editor) -> None:
    cells = ["# Title", "import torch\nfrom torch.autograd import Function", "%%gradsmith\n" + SWISH.split("\n\n\n")[1]]
    uris = [f"vscode-notebook-cell:/a%20folder/x.ipynb#W{n}sZmlsZQ%3D%3D" for n in range(3)]
    kinds = [types.NotebookCellKind.Markup, types.NotebookCellKind.Code, types.NotebookCellKind.Code]
    book = types.NotebookDocument(
        (editor.root / "x.ipynb").as_uri(),
        "jupyter-notebook",
        1,
        [types.NotebookCell(kind, uri) for kind, uri in zip(kinds, uris)],
    )
    languages = ["markdown", "python", "python"]
    documents = [types.TextDocumentItem(u, w, 1, t) for u, w, t in zip(uris, languages, cells)]
    editor.on_loop(editor.client.notebook_document_did_open, types.DidOpenNotebookDocumentParams(book, documents))
    where = _where(editor.shown(uris[2]), "inplace-grad")
    assert where.start == types.Position(11, 8) and editor.shown(uris[1]) == []
    ignore = next(a for a in editor.actions(uris[2], where) if a.title.startswith("ignore here"))
    assert ignore.edit is not None
    assert "mul_(s)  # gradsmith: ignore[inplace-grad]\n" in after(cells[2], ignore.edit)
    assert [lens.range.start.line for lens in editor.lenses(uris[2])] == [1, 1] and editor.lenses(uris[1]) == []
    # The cell with the class goes to the front; the import is behind it now.
    moved = types.NotebookCellArrayChange(0, 3, [book.cells[2], book.cells[1]])
    changes = types.NotebookDocumentCellChanges(types.NotebookDocumentCellChangeStructure(moved))
    params = types.DidChangeNotebookDocumentParams(
        types.VersionedNotebookDocumentIdentifier(2, book.uri), types.NotebookDocumentChangeEvent(cells=changes)
    )
    editor.diagnostics.clear()
    editor.on_loop(editor.client.notebook_document_did_change, params)
    assert _where(editor.shown(uris[2]), "inplace-grad") == where
    assert json.dumps(editor.messages).count("failed") == 0
