"""Comments that speak to us, edits, and the walk over files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsmith.findings import Edit, GradsmithError
from gradsmith.source import edits, suppressions
from gradsmith.source.scan import SourceFile, known, read_all


@pytest.mark.parametrize(
    ("comment", "hidden"),
    [
        ("# gradsmith: ignore[inplace-grad]", True),
        ("# gradsmith: ignore[return-count, inplace_grad]", True),
        ("# gradsmith: ignore[GS202]", True),
        ("# gradsmith: ignore[GS2]", True),
        ("#gradsmith:ignore", True),
        ("# noqa: GS202", True),
        ("# noqa", True),
        ("# noqa: E501", False),
        ("# gradsmith: ignore[return-count]", False),
        ("# an ignore in prose", False),
    ],
)
def test_suppressions(comment: str, hidden: bool) -> None:
    assert suppressions.read(["x = 1", f"g.mul_(2)  {comment}"]).hides("inplace-grad", "GS202", [2]) is hidden


def test_a_suppression_knows_whether_it_was_of_use() -> None:
    found = suppressions.read(["a  # gradsmith: ignore[inplace-grad]", "b  # gradsmith: ignore"])
    assert found.hides("inplace-grad", "GS202", [1])
    assert [s.line for s in found.used] == [1]


def test_noqa_on_the_class_line_does_not_hide_the_class() -> None:
    found = suppressions.read(["class A:  # noqa", "class B:  # gradsmith: ignore"])
    assert not found.hides("inplace-grad", "GS202", [5], class_line=1)
    assert found.hides("inplace-grad", "GS202", [5], class_line=2)


def test_edits_keep_everything_else() -> None:
    text = "a = 1  # one\r\nb = ü.data\r\n"
    assert edits.apply(text, [Edit(2, 5, 2, 10, ".detach()")]) == "a = 1  # one\r\nb = ü.detach()\r\n"
    assert edits.apply(text, [Edit(1, 4, 1, 5, "2"), Edit(1, 4, 1, 5, "2"), Edit(1, 0, 1, 5, "c")]).startswith(
        "c  # one"
    )
    assert edits.apply(text, [Edit(9, 0, 9, 1, "x")]) == text


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))),
)
def test_no_edit_crashes(text: str, places: list[tuple[int, int, int, int]]) -> None:
    edits.apply(text, [Edit(*place, "x") for place in places])


def test_diff() -> None:
    assert edits.unified_diff("a\n", "a\n", "f.py") == ""
    assert "+b" in edits.unified_diff("a\n", "b\n", "f.py")


def test_walk(tmp_path: Path) -> None:
    for name in (
        "a.py",
        ".venv/b.py",
        "build/c.py",
        "pkg/build/__init__.py",
        "pkg/d.txt",
        "env2/pyvenv.cfg",
        "env2/e.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    paths = [str(Path(s.path).relative_to(tmp_path)) for s in read_all([tmp_path])]
    assert paths == ["a.py", "pkg/build/__init__.py"]
    inside = [s for s in read_all([tmp_path / ".venv", tmp_path / "a.py", tmp_path]) if isinstance(s, SourceFile)]
    assert [(Path(s.path).name, s.named) for s in inside] == [("b.py", False), ("a.py", True), ("__init__.py", False)]
    with pytest.raises(GradsmithError, match="no such file or folder: nowhere"):
        list(read_all(["nowhere"]))


def test_first_look() -> None:
    assert known(b"class A(F):\n def backward(ctx, g): pass").function
    assert not known(b"import torch\nloss.backward()\n").function
    assert known(b"class A(nn.Module):\n def forward(self, x):\n  for t in x: pass").layer


def test_a_pipe_in_a_folder_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "waits.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "there.py").write_text("x = 1\n")
    read = {Path(source.path).name: type(source).__name__ for source in read_all([str(tmp_path)])}
    assert read == {"gone.py": "Unreadable", "waits.py": "Unreadable", "there.py": "SourceFile"}
