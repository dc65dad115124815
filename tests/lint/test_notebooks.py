"""Notebooks: findings by cell, magics tolerated, everything else in the file untouched."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.report import render
from gradsmith.source import notebook

BAD = rules()["inplace-grad"].bad
CLASS = BAD[BAD.index("class") : BAD.index("gradsmith_inputs")].strip()


def written(path: Path, *cells: str, markdown: str = "# Title: def backward(ctx") -> Path:
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_markdown_cell(markdown), *(nbformat.v4.new_code_cell(c) for c in cells)]
    nbformat.write(book, path)
    return path


def test_a_finding_names_cell_and_line(tmp_path: Path) -> None:
    path = written(tmp_path / "n.ipynb", "from torch.autograd import Function\n%matplotlib inline", "x = 1", CLASS)
    for target in (path, tmp_path):
        (finding,) = gs.lint(target).findings
        assert (finding.rule, finding.cell, finding.line) == ("inplace-grad", 4, 8)
        assert finding.snippet.strip() == "grad_output.mul_(2)"
    assert "n.ipynb:cell 4:8:9" in render(gs.lint(path), "concise")


def test_a_base_imported_in_another_cell_is_known(tmp_path: Path) -> None:
    text = CLASS.replace("torch.autograd.Function", "Function")
    path = written(tmp_path / "n.ipynb", "from torch.autograd import Function", text)
    assert [f.cell for f in gs.lint(path).findings] == [3]


@pytest.mark.parametrize(
    "magic",
    [
        "%matplotlib inline",
        "!pip install torch \\\n   --quiet",
        "files = !ls",
        "out = %timeit -o f()",
        "torch.sin?",
        "?torch.sin",
        "if True:\n    %time f()",
    ],
)
def test_magics_are_tolerated(tmp_path: Path, magic: str) -> None:
    path = written(tmp_path / "n.ipynb", f"import torch\n{magic}\n{CLASS}")
    report = gs.lint(path)
    assert report.skipped == []
    (finding,) = report.findings
    assert finding.line == 8 + 1 + magic.count("\n") + 1


def test_cells_that_are_not_python_do_not_hide_the_others(tmp_path: Path) -> None:
    path = written(tmp_path / "n.ipynb", "%%bash\nls -l | cat", "def broken(:\n  pass", "%%time\n" + CLASS)
    report = gs.lint(path)
    assert [(f.cell, f.line) for f in report.findings] == [(4, 9)]
    assert [s.reason for s in report.skipped] == ["cell 3: invalid syntax at line 1"]


def test_a_fix_changes_one_cell_and_nothing_else(tmp_path: Path) -> None:
    path = written(tmp_path / "n.ipynb", "import torch\n%matplotlib inline", CLASS)
    before = path.read_bytes()
    changes = gs.fix(path)
    assert changes.count == 1
    old, new = json.loads(before), json.loads(path.read_bytes())
    assert "grad_output = grad_output.clone()" in "".join(new["cells"][2]["source"])
    new["cells"][2]["source"] = old["cells"][2]["source"]
    assert old == new
    changed = set(path.read_text().splitlines()) ^ set(before.decode().splitlines())
    assert len(changed) == 1
    assert "+        grad_output = grad_output.clone()" in changes.diff()
    nbformat.read(path, as_version=4)


def test_ignores_are_written_into_cells(tmp_path: Path) -> None:
    path = written(tmp_path / "n.ipynb", "import torch", CLASS)
    gs.add_ignores(path)
    assert gs.lint(path).findings == []
    assert "# gradsmith: ignore[inplace-grad]" in path.read_text()


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"cells": 3}', b'{"cells": [3]}', b"\xff\xfe", b'{"worksheets": []}']
)
def test_what_is_no_notebook_is_skipped_in_words(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(data)
    (skipped,) = gs.lint(path).skipped
    assert skipped.reason.startswith(("cannot be read as a notebook", "cannot be decoded"))


@pytest.mark.parametrize("layout", [{"indent": 1}, {"indent": 2}, {"indent": 4, "ensure_ascii": False}, {}])
def test_the_layout_of_the_file_stays(layout: dict[str, object]) -> None:
    content = {"cells": [{"cell_type": "code", "source": ["x = 'ü'\n", "y"]}], "nbformat": 4}
    data = json.dumps(content, **layout).encode()  # type: ignore[arg-type]
    assert notebook.edited(data, {}) == data
