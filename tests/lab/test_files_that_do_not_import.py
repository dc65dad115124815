"""A file whose package or neighbours are not here is run as far as it can be, and the report says how."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.findings import Report
from gradsmith.lab.subject.standins import StandIns, StandInUsed, hide, is_stand_in, stand_in
from gradsmith.source.needed import needed

HEAD = "import torch\n\n\n"
DOUBLE = """class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {forward}

    @staticmethod
    def backward(ctx, grad_output):
        return {backward}
"""


def double(forward: str = "2 * x", backward: str = "2 * grad_output") -> str:
    return DOUBLE.format(forward=forward, backward=backward)


def package(folder: Path, **files: str) -> Path:
    """A package `ours` with these files; `__init__.py` needs what nobody has."""
    home = folder / "ours"
    home.mkdir()
    (home / "__init__.py").write_text("import a_package_for_the_cluster\nSIZE = 3\n")
    for name, text in files.items():
        (home / f"{name}.py").write_text(text)
    return home / "ops.py"


def checked(path: Path) -> Report:
    return gs.check_paths(f"{path}::Double", level="quick", inputs="torch.randn(3, requires_grad=True)")


def told(report: Report) -> str:
    (finding,) = [f for f in report.findings if f.rule == "import-failed"]
    assert finding.severity == "info"
    return finding.message


def test_a_file_runs_although_its_package_does_not_import(tmp_path: Path) -> None:
    report = checked(package(tmp_path, ops=HEAD + double()))
    assert report.subjects[0].verdict == "verified"
    assert "line 1 of ours/__init__.py imports a_package_for_the_cluster, which is not installed" in told(report)
    assert "gradsmith imported the file without running the __init__.py of its package" in told(report)


@pytest.mark.parametrize(
    "head",
    [
        "import a_package_nobody_has.layers as layers\n",
        "from a_package_nobody_has import Float\n\n\ndef size(x: Float['n']) -> Float: ...\n",
        "from . import SIZE\n",
        "from .broken import scale\n",
        "from .missing import scale\n",
        "from .kernels import run\n\n\nclass Layer(run): ...\n",
        "try:\n    import nobodys_plots\nexcept ImportError as e:\n    raise ImportError('install the plots') from e\n",
        "try:\n    import nobodys_plots\nexcept ImportError:\n    raise ImportError('install the plots')\n",
    ],
)
def test_what_is_missing_is_a_stand_in(tmp_path: Path, head: str) -> None:
    path = package(tmp_path, ops=head + HEAD + double(), broken="1 / 0\n", kernels="from numba_of_mine import run\n")
    report = checked(path)
    assert report.subjects[0].verdict == "verified"
    assert "that raises if it is used" in told(report)


def test_a_missing_package_stays_one_where_its_neighbour_says_so_in_other_words(tmp_path: Path) -> None:
    guarded = (
        "try:\n    import nobodys_plots\nexcept ImportError as e:\n    raise ImportError('install the plots') from e\n"
    )
    path = package(tmp_path, ops="from .plots import nobodys_plots\n" + HEAD + double(), plots=guarded)
    path.with_name("__init__.py").write_text("from .plots import nobodys_plots\n")
    assert "line 2 of ours/plots.py imports nobodys_plots, which is not installed" in told(checked(path))


def test_an_import_that_is_guarded_stays_missing(tmp_path: Path) -> None:
    guarded = "import other_missing\ntry:\n    import fast_kernels\nexcept ImportError:\n    fast_kernels = None\n"
    forward = "2 * x if fast_kernels is None else fast_kernels.double(x)"
    report = checked(package(tmp_path, ops=guarded + HEAD + double(forward)))
    assert report.subjects[0].verdict == "verified"
    assert "fast_kernels" not in told(report)


def test_a_top_level_that_raises_leaves_the_class_with_the_names_it_uses(tmp_path: Path) -> None:
    head = "import missing_here\n\ntable = missing_here.build()\nscale = 2\nunused = 1 / 0\n"
    report = checked(package(tmp_path, ops=head + HEAD + double("scale * x") + "\nraise SystemExit(3)\n"))
    assert report.subjects[0].verdict == "verified"
    assert "gradsmith ran only Double and the names it uses" in told(report)


def test_a_top_level_that_raises_by_itself_is_worth_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(HEAD + double() + "\n\nraise SystemExit(3)\n")
    report = checked(path)
    assert report.subjects[0].verdict == "verified"
    assert [(f.rule, f.severity) for f in report.findings if f.severity != "info"] == [("import-failed", "warning")]


def test_a_stand_in_that_is_used_accuses_nobody(tmp_path: Path) -> None:
    head = "from a_package_nobody_has import double\n"
    inside = checked(package(tmp_path, ops=head + HEAD + double(backward="double(grad_output)")))
    assert inside.subjects[0].verdict == "unverified"
    assert not [f for f in inside.findings if f.severity == "error"]
    (finding,) = [f for f in inside.findings if f.rule == "backward-raised"]
    assert "a_package_nobody_has.double is a stand-in: a_package_nobody_has is not installed" in finding.message


def test_forward_that_needs_a_stand_in_is_not_verified_and_says_why(tmp_path: Path) -> None:
    path = package(tmp_path, ops="from nobody_has import double\n" + HEAD + double("double(x)"))
    subject = gs.check_paths(f"{path}::Double", level="quick").subjects[0]
    assert subject.verdict == "unverified"
    assert "forward uses nobody_has.double, and nobody_has is not installed" in subject.reason


def test_the_class_itself_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text("import missing_here\n" + HEAD + "@missing_here.register\n" + double())
    report = checked(path)
    assert "import-failed: line 1 imports missing_here" in report.subjects[0].reason


def test_stand_ins_can_be_named_and_inherited_from() -> None:
    jax = stand_in("jax.Array", "jax is not installed")

    class Ours(jax):
        pass

    assert not isinstance(1, jax)
    assert jax["n"] is jax
    for use in (Ours, jax, lambda: jax + 1, lambda: jax.shape > 2, lambda: list(jax)):
        with pytest.raises(StandInUsed, match="jax is not installed"):
            use()


def test_only_statements_that_are_used_are_kept() -> None:
    import ast

    source = "import os\nfrom a import *\nif os.name:\n    n = 1\nelse:\n    n = 2\nother = 3\nclass A:\n    size = n\n"
    assert [s.lineno for s in needed(ast.parse(source), ["A"])] == [1, 2, 3, 8]


def test_a_function_of_the_old_style_gets_one_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(
        HEAD + "class Scale(torch.autograd.Function):\n"
        "    def __init__(self, factor):\n        self.factor = factor\n\n"
        "    def forward(self, x):\n        return x * self.factor\n\n"
        "    def backward(self, grad_output):\n        return grad_output * self.factor\n"
    )
    report = gs.check_paths(path)
    (error,) = [f for f in report.findings if f.severity != "info"]
    assert error.rule == "legacy-function"
    assert "self.factor" in error.message
    assert "old style" in report.subjects[0].reason
    assert os.path.basename(error.path or "") == "old.py"


def test_what_a_failed_import_loaded_of_others_is_not_loaded_twice(tmp_path: Path) -> None:
    """sympy twice in one process knows two infinities, which cannot be compared, and torch stumbles over that."""
    path = package(tmp_path, ops="import sympy\nimport nobody_has_it\n" + HEAD + double())
    (path.parent / "__init__.py").write_text("import sympy.core.numbers\nimport a_package_for_the_cluster\n")
    report = gs.check_paths(f"{path}::Double", inputs="torch.randn(3, requires_grad=True)")
    assert report.subjects[0].verdict == "verified"


def test_where_nothing_helps_both_reasons_are_told(tmp_path: Path) -> None:
    path = package(tmp_path, ops=HEAD + double().replace("torch.autograd.Function", "torch.nn.Function"))
    (subject,) = gs.check_paths(path, level="quick").subjects
    assert subject.verdict == "unverified"
    assert "has no attribute 'Function'" in subject.reason
    assert "a_package_for_the_cluster" in subject.reason


def test_a_stand_in_is_for_user_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch looks whether triton is there: one that raises when it is used ended the process that had opened the file.
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    StandIns(["nowhere_at_all"]).install()
    with pytest.raises(ModuleNotFoundError):
        exec("import nowhere_at_all", {"__name__": "torch.utils._triton"})
    exec("import nowhere_at_all", {"__name__": "ops"})
    assert is_stand_in(sys.modules["nowhere_at_all"])
    hide()
    assert "nowhere_at_all" not in sys.modules
