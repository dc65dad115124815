"""A verdict is given again only while nothing has changed that its subject could see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.checking.jobs import Running
from gradsmith.checking.options import Options
from gradsmith.checking.paths import linted_and_run
from gradsmith.checking.remembered import Memory
from gradsmith.checking.subjects import wanted
from gradsmith.checking.world import digest
from gradsmith.storage import read_whole
from tests.daily import projects

OPS = '''"""A Function that looks around."""
import glob
import os
import torch
from pkg.helper import factor

try:
    from pkg import fast
except ImportError:
    fast = None

HERE = os.path.dirname(__file__)
with open(os.path.join(HERE, "scale.txt")) as stream:
    SCALE = float(stream.read())
TABLES = len(glob.glob(os.path.join(HERE, "tables", "*.txt")))
BIAS = float(os.environ.get("OPS_BIAS", "0"))
DOUBLE = os.path.exists(os.path.join(HERE, "double"))


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        from pkg.late import late

        return x * factor() * SCALE * late() + BIAS + TABLES

    @staticmethod
    def backward(ctx, grad_output):
        from pkg.late import late

        return grad_output * factor() * SCALE * late()


class Again(Scale):
    """For a worker that is forked after the first, when more is loaded."""


def example():
    return (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {"Scale": example, "Again": example}
'''
NAMES = ["Scale", "Again"]
SQUARE = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(3, dtype=torch.float64, requires_grad=True),)}
"""
FILES = {
    "pkg/__init__.py": "",
    "pkg/ops.py": OPS,
    "pkg/helper.py": "from pkg.deeper import TWO\n\n\ndef factor():\n    return TWO\n",
    "pkg/deeper.py": "TWO = 2.0\n",
    "pkg/late.py": "def late():\n    return 1.5\n",
    "pkg/unused.py": "UNUSED = 1\n",
    "pkg/scale.txt": "3.0",
    "pkg/tables/a.txt": "a",
    "README.md": "read me",
}
OPTIONS = {**Options(level="quick").as_json(), "lint": False}


@dataclass
class Place:
    """A project whose verdict is remembered, and how it was asked for."""

    folder: Path
    how: Running

    def recalled(self, how: Running | None = None) -> list[str]:
        names, known = Memory(how or self.how).recall(wanted(["pkg/ops.py"])[0])
        assert [name for name, _ in names] == NAMES
        return list(known)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    from gradsmith import check_paths

    folder = projects.write(tmp_path_factory.mktemp("project"), FILES)
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    report = check_paths("pkg/ops.py", level="quick", cache=True)
    assert report.closing_line() == "2 verified" and not report.notes
    yield Place(folder, Running(OPTIONS))
    patch.undo()


Change = Callable[[Place], Callable[[], None]]


def _text(name: str, text: str | None) -> Change:
    """The file holds something else, or (None) is gone; what comes back puts it as it was."""

    def change(place: Place) -> Callable[[], None]:
        path = place.folder / name
        before = path.read_text() if path.exists() else None

        def put(content: str | None) -> None:
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True) if content is None else path.write_text(content)

        put(text)
        return lambda: put(before)

    return change


def _variable(name: str, value: str) -> Change:
    def change(place: Place) -> Callable[[], None]:
        before = os.environ.get(name)
        os.environ[name] = value
        return lambda: os.environ.pop(name) and None if before is None else os.environ.__setitem__(name, before)

    return change


SEEN: dict[str, Change] = {
    "its own file": _text("pkg/ops.py", OPS.replace("1.5", "1.6").replace("a Function", "the Function") + "\n"),
    "a module that it imports": _text("pkg/helper.py", FILES["pkg/helper.py"] + "\n"),
    "a module that this one imports": _text("pkg/deeper.py", "TWO = 2.5\n"),
    "a module that forward imports": _text("pkg/late.py", "def late():\n    return 1.25\n"),
    "its package": _text("pkg/__init__.py", "import math\n"),
    "a file that it reads": _text("pkg/scale.txt", "4.0"),
    "a file that it reads is gone": _text("pkg/scale.txt", None),
    "a module that was missing": _text("pkg/fast.py", "pass\n"),
    "a package that was missing": _text("pkg/fast/__init__.py", "pass\n"),
    "a folder that it lists": _text("pkg/tables/b.txt", "b"),
    "a file that it asks for": _text("pkg/double", ""),
    "a variable that it reads": _variable("OPS_BIAS", "1"),
    "a variable that C reads": _variable("OMP_NUM_THREADS", "7"),
}
UNSEEN: dict[str, Change] = {
    "a file that nobody reads": _text("README.md", "read me again"),
    "a module that nobody imports": _text("pkg/unused.py", "UNUSED = 2\n"),
    "a report": _text("report.json", "{}"),
    "a variable that nobody reads": _variable("UNREAD", "1"),
    "the width of the terminal": _variable("COLUMNS", "77"),
}


def test_nothing_has_changed(place: Place) -> None:
    assert place.recalled() == NAMES


def test_what_most_checks_load_is_loaded_before_the_second_worker(tmp_path: Path) -> None:
    """A process of its own: the zygotes that tests share have loaded more."""
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(SQUARE)
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    call = [sys.executable, "-m", "gradsmith", "check", "first.py", "second.py", "--level", "quick"]
    subprocess.run(call, cwd=tmp_path, env=environment, check=True, capture_output=True)
    entries = [json.loads(read_whole(path) or b"{}") for path in (tmp_path / "cache").rglob("verdicts/*.json")]
    (seen,) = (
        e["reports"]["Square"]["seen"]
        for e in entries
        if str(tmp_path / "second.py") in e["reports"]["Square"]["seen"]["files"]
    )
    assert digest([]) in [group for group, _ in seen["installed"]], "its worker loaded something that was installed"


@pytest.mark.parametrize("name", SEEN)
def test_whatever_it_can_see(name: str, place: Place) -> None:
    restore = SEEN[name](place)
    try:
        assert place.recalled() == []
    finally:
        restore()
    if name != "a package that was missing":  # its empty folder stays, and could be imported
        assert place.recalled() == NAMES
    else:
        (place.folder / "pkg" / "fast").rmdir()


@pytest.mark.parametrize("name", UNSEEN)
def test_what_it_cannot_see(name: str, place: Place) -> None:
    restore = UNSEEN[name](place)
    try:
        assert place.recalled() == NAMES
    finally:
        restore()


CHANGES = st.lists(
    st.sampled_from([n for n in [*SEEN, *UNSEEN] if "package that" not in n]), min_size=2, max_size=4, unique=True
)


@pytest.mark.parametrize("examples", [8, pytest.param(80, marks=pytest.mark.deep)])
def test_any_of_these_changes_together(examples: int, place: Place) -> None:
    @settings(max_examples=examples)
    @given(CHANGES)
    def together(changes: list[str]) -> None:
        _judged_together(changes, place)

    together()


def _judged_together(changes: list[str], place: Place) -> None:
    table = {**SEEN, **UNSEEN}
    restores = [table[name](place) for name in changes]
    try:
        assert place.recalled() == ([] if any(name in SEEN for name in changes) else NAMES)
    finally:
        for restore in reversed(restores):
            restore()


@pytest.mark.parametrize(
    "how",
    [
        {"options": {**OPTIONS, "level": "standard"}},
        {"options": {**OPTIONS, "seed": 1}},
        {"options": {**OPTIONS, "ignore": ["GS1"]}},
        {"options": {**OPTIONS, "assumes": {"Scale": ["x > 0"]}}},
        {"inputs": "randn(2, 2)"},
        {"stubs": ["numpy"]},
        {"device": "meta"},
        {"bytes": 1 << 30},
    ],
    ids=lambda how: next(iter(how)),
)
def test_another_question_has_another_answer(how: dict[str, object], place: Place) -> None:
    assert place.recalled(replace(place.how, **how)) == []  # type: ignore[arg-type]


def test_another_gradsmith_judges_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradsmith.checking.remembered._ourselves", lambda: "another")
    assert place.recalled() == []


def test_an_installed_package_that_changed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.version

    real = os.stat

    def another(path: object, **rest: object) -> os.stat_result:
        found = real(path, **rest)  # type: ignore[arg-type, call-overload]
        if str(path) == torch.version.__file__:
            return os.stat_result((*found[:6], found.st_size + 1, *found[7:10]))
        return found

    monkeypatch.setattr("gradsmith.checking.world.os.stat", another)
    assert place.recalled() == []


def test_a_list_of_installed_files_that_is_lost_is_never_the_same(place: Place) -> None:
    from gradsmith.checking.remembered import _group
    from gradsmith.checking.world import World

    lost = "0" * 32
    assert World().installed(_group(lost), lost) != World().installed(_group(lost), lost)


BEYOND = """import subprocess
import torch

subprocess.run(["true"])


{}gradsmith_inputs = {{"Two": lambda: (torch.randn(3, dtype=torch.float64, requires_grad=True),)}}
"""


def test_what_cannot_be_compared_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "ops.py"
    file.write_text(BEYOND.format(projects.FUNCTION.format(name="Two", scale=2, slope=2)))
    how = Running(OPTIONS)
    report = linted_and_run([str(file)], wanted([str(file)]), how, cache=True, verbose=True)
    assert report.closing_line() == "1 verified"
    assert report.notes == ["not remembered: Two, which starts a program"]
    assert Memory(how).recall(wanted([str(file)])[0])[1] == {}
