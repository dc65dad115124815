"""A wrong gradient comes with a proved change of the user's own source: small where that is enough, derived where it is not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import gradsmith as gs
from gradsmith import Report
from gradsmith.checking.fixing import fixes, read_before
from gradsmith.diagnosis.mending.dead import unread
from gradsmith.diagnosis.mutate import candidates
from gradsmith.findings import Edit, Finding
from gradsmith.report.failing_tests import render
from gradsmith.source.edits import apply

HEAD = "import torch\n\n\n"
TWO = """

def example():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(4, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Norm": example}
"""
NORM = '''class Norm(torch.autograd.Function):
    """x over its root mean square, times w."""

    @staticmethod
    def forward(ctx, x, w):
        rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, w, rstd)
        return x * rstd * w

    @staticmethod
    def backward(ctx, grad_output):
        x, w, rstd = ctx.saved_tensors
        # easy
        grad_w = (grad_output * x * rstd).sum_to_size(w.shape)
        grad_x = grad_output * w * rstd  # a term is missing
        return grad_x, grad_w
'''
NO_BACKWARD = """class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return torch.tanh(x * w)
"""


def mended(text: str, report: Report) -> str:
    (finding,) = [f for f in report.errors if f.edits]
    return apply(text, finding.edits)


def test_only_the_lines_of_the_wrong_gradient_change(check_source: Callable[..., Report]) -> None:
    text = HEAD + NORM + TWO
    report = check_source(text)
    after = mended(text, report)
    before_lines, after_lines = text.splitlines(), after.splitlines()
    assert [line for line in before_lines if line not in after_lines] == [
        "        grad_x = grad_output * w * rstd  # a term is missing"
    ]
    assert "        # easy" in after_lines
    assert report.errors[0].applicability == "safe"
    assert "gradsmith derived from forward" in (report.errors[0].advice or "")
    assert check_source(after, "quick").ok


def test_a_backward_that_is_not_there_is_written(check_source: Callable[..., Report]) -> None:
    text = HEAD + NO_BACKWARD + TWO
    after = mended(text, check_source(text))
    assert "ctx.save_for_backward(x, w)" in after and "def backward(ctx, grad_output):" in after
    assert check_source(after, "quick").ok


def test_level_quick_searches_for_no_repair(check_source: Callable[..., Report]) -> None:
    assert not any(f.evidence.get("repair") for f in check_source(HEAD + NORM + TWO, "quick").findings)


def test_nothing_is_mended_under_a_surrogate(check_source: Callable[..., Report]) -> None:
    text = HEAD + NORM.replace("Function):", "Function):  # gradsmith: surrogate[custom]", 1) + TWO
    assert not any(f.edits for f in check_source(text).findings)


def test_a_repair_is_right_at_every_declared_example(check_source: Callable[..., Report]) -> None:
    """Sums over the last two dimensions mend the first example and would break the second."""
    text = HEAD + (
        "class Norm(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, w):\n"
        "        ctx.save_for_backward(x, w)\n"
        "        return x * w\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, grad_output):\n"
        "        x, w = ctx.saved_tensors\n"
        "        return grad_output * w, None\n\n\n"
        "def draw(*shape):\n"
        "    return torch.randn(shape, dtype=torch.float64, requires_grad=True)\n\n\n"
        'gradsmith_inputs = {"Norm": [lambda: (draw(3, 4), draw(4)), lambda: (draw(2, 3, 4), draw(3, 4))]}\n'
    )
    (finding,) = [f for f in check_source(text).errors if f.edits]
    assert check_source(apply(text, finding.edits), "quick").ok


def test_guessed_inputs_make_a_repair_unsafe(load: Callable[[str], ModuleType]) -> None:
    module = load(HEAD + NORM)
    offered = [f for f in gs.check(module.Norm).findings if f.edits]
    assert offered
    assert all(f.applicability == "unsafe" for f in offered)


def test_a_change_never_writes_into_another_tensor() -> None:
    tree = ast.parse("def backward(ctx, g):\n    buf = g.clone()\n    up = buf.mul_(2)\n    return up\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert not [c.after for c in candidates(tree) if "g.mul_" in c.after or "up.mul_" in c.after]


def test_statements_that_nothing_reads_any_more_go_and_the_authors_own_stay() -> None:
    source = (
        "def backward(ctx, g):\n"
        "    (x,) = ctx.saved_tensors\n"
        "    unused = x\n"
        "    half = g / 2\n"
        "    grad = half * x\n"
        "    return grad\n"
    )
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    gone = unread(tree, [tree.body[3]], frozenset({"g", "x"}))
    assert [ast.unparse(s) for s in gone] == ["half = g / 2"]


def finding_at(path: Path) -> Report:
    edit = Edit(1, 4, 1, 5, "2")
    found = Finding("wrong", "r", "c", "error", path=str(path), line=1, edits=(edit,), applicability="safe")
    return Report(findings=[found])


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text("x = 1\n")
    before = read_before([str(path)])
    assert [file.after for file in fixes(finding_at(path), before, unsafe=False).files] == [b"x = 2\n"]
    path.write_text("x = 1  # edited\n")
    found = fixes(finding_at(path), before, unsafe=False)
    assert found.files == [] and "has changed" in found.left[0]


def test_installed_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "site-packages" / "ops.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")
    found = fixes(finding_at(path), {}, unsafe=True)
    assert found.files == [] and "is installed" in found.left[0]


def test_a_written_test_fails_before_the_repair_and_passes_after_it(
    check_source: Callable[..., Report], tmp_path: Path
) -> None:
    text = HEAD + NORM + TWO
    report = check_source(text)
    place = Path(str(report.errors[0].path))
    written, count = render(report, str(tmp_path / "test_found.py"))
    assert count == 1
    scope: dict[str, object] = {"__file__": str(tmp_path / "test_found.py"), "__name__": "test_found"}
    exec(compile(written, "test_found.py", "exec"), scope)
    (test,) = [value for name, value in scope.items() if name.startswith("test_") and callable(value)]
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        test()
    place.write_text(mended(text, report))
    test()


@pytest.mark.deep
def test_the_commands_end_to_end(tmp_path: Path) -> None:
    import subprocess
    import sys

    path, test = tmp_path / "ops.py", tmp_path / "test_found.py"
    path.write_text(HEAD + NORM + TWO)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True)

    shown = run("gradsmith", "check", "ops.py", "--diff", "--write-test", "test_found.py")
    assert shown.returncode == 1 and "+++ b/ops.py" in shown.stdout and "would fix" in shown.stderr
    assert path.read_text() == HEAD + NORM + TWO
    assert run("gradsmith", "check", "ops.py", "--write-test", "test_found.py").returncode == 2
    assert run("pytest", "-q", str(test)).returncode == 1
    assert run("gradsmith", "check", "ops.py", "--fix").returncode == 0
    assert run("pytest", "-q", str(test)).returncode == 0
