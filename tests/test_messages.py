"""What users read: names, numbers, and what to write instead. That every rule's message does: tests/test_catalogue.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gradsmith as gs
from gradsmith.catalog import Rule, rules
from gradsmith.findings import InputsFrom, Report
from gradsmith.report import FORMATS, render


def swish(beta_factor: str) -> str:
    source = (Path(__file__).parents[1] / "examples" / "first_gradient.py").read_text()
    start, end = source.index("class Swish"), source.index("class Linear")
    body = source[start:end].replace("grad_output * x * slope", f"grad_output * {beta_factor} * slope")
    inputs = (
        'gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True), '
        "torch.tensor(1.5, dtype=torch.float64, requires_grad=True))}\n"
    )
    return "import torch\n\n\n" + body + inputs


def test_a_wrong_gradient_names_function_argument_and_both_numbers(check_source: Callable[..., Report]) -> None:
    report = check_source(swish("x"))
    (finding,) = report.errors
    assert finding.rule == "wrong-gradient"
    assert finding.argument == "beta"
    assert "Swish.backward" in finding.message
    assert f"{finding.evidence['claimed']:.6g}" in finding.message
    assert f"{finding.evidence['true']:.6g}" in finding.message
    assert check_source(swish("x * x")).ok


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_renders_and_ends_in_a_newline(format: str, check_source: Callable[..., Report]) -> None:
    text = render(check_source(swish("x")), format)
    assert "wrong-gradient" in text
    assert text.endswith("\n")


def test_the_full_report_shows_the_users_line_with_a_caret() -> None:
    text = render(gs.lint_source(rules()["inplace-grad"].bad, path="ops.py"), "full")
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "|         grad_output.mul_(2)" in line)
    assert lines[at + 1].split("|")[1].strip().strip("^") == ""
    assert "--> ops.py:12:9" in text  # the column is that of the line as it is shown
    assert lines[at + 1].partition("| ")[2].index("^") == 8
    assert "help:" in text


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("gradient-shape", "return grad_output / x.numel()"),  # what backward returns for the input
        ("backward-raised", "return x * (grad_output / length)"),  # the line that raised
        ("output-view-saved", "ctx.save_for_backward(result.view(-1))"),  # the save
        ("surrogate-slope", "return grad_output * s * (1 - s)"),  # what backward returns for the input
        # what changes ctx, and what reads memory without its strides: not the return
        ("not-repeatable", "factor = ctx.factors.pop(0) if len(ctx.factors) > 1 else ctx.factors[0]"),
        ("layout-dependent", "flat = torch.as_strided(grad_output, (grad_output.numel(),), (1,))"),
    ],
)
def test_a_finding_of_check_shows_the_line_it_is_about(
    rule: str, line: str, check_source: Callable[..., Report]
) -> None:
    report = check_source(rules()[rule].bad, level="quick")
    assert line in {f.snippet.strip() for f in report.findings}
    assert f"| {' ' * 8}{line}" in render(report, "full")


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        pytest.param("graph-break", "ctx.scale = x.abs().max().tolist()", marks=pytest.mark.deep),  # where dynamo stops
        ("module-copy", "self.initial = self.weight * 1.0"),  # what makes the attribute
        ("vmap-mismatch", "def vmap(info, in_dims, x):"),  # the method, not the class
    ],
)
def test_a_condition_that_fails_shows_the_line_that_is_to_blame(
    rule: str, line: str, load: Callable[[str], ModuleType]
) -> None:
    module = load(rules()[rule].bad)
    ((name, inputs),) = module.gradsmith_inputs.items()
    (finding,) = gs.check(getattr(module, name), *inputs(), select=[rule]).findings
    assert finding.snippet.strip() == line


@pytest.mark.parametrize(
    "rule", [rule for rule in rules().values() if rule.fixable and "lint" in rule.lenses], ids=lambda rule: rule.name
)
def test_an_unsafe_change_says_why(rule: Rule) -> None:
    for finding in gs.lint_source(rule.bad).findings:
        if finding.edits and finding.applicability == "unsafe":
            assert "The change is unsafe: " in (finding.advice or "")


@pytest.mark.parametrize(
    ("slope", "said"),
    [
        ("torch.no_grad()(torch.square)(x)", "Leave out no_grad"),
        ("x.detach() ** 2", "Do without `.detach()`"),
        ("square", "Compute 'square' again in backward"),
    ],
)
def test_a_wrong_second_derivative_names_what_autograd_does_not_see(
    slope: str, said: str, load: Callable[[str], ModuleType]
) -> None:
    source = rules()["wrong-second-order"].bad.replace("torch.no_grad()(torch.square)(x)", slope)
    if slope == "square":
        source = source.replace("save_for_backward(x)", "save_for_backward(square)").replace("(x,) = ", "(square,) = ")
        source = source.replace("        ctx.save", "        square = x * x\n        ctx.save")
    (finding,) = gs.check(
        load(source).Cube,
        torch.randn(3, dtype=torch.float64, requires_grad=True),
        select=["wrong-second-order"],
    ).findings
    assert (finding.advice or "").startswith(said)


def test_a_slope_that_differs_names_the_declaration_the_element_and_the_factor(
    check_source: Callable[..., Report],
) -> None:
    (finding,) = check_source(rules()["surrogate-slope"].bad, level="quick").findings
    assert "`like=lambda (line 7)`" in finding.message
    assert f"x{finding.evidence['element']}" in finding.message
    assert "4 times what backward returns, at every element" in finding.message


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("given", "`--inputs`"),
        ("declared", "gradsmith_inputs or @gs.example_inputs"),
        ("recorded", "were recorded"),
        ("guessed", "gradsmith guessed these inputs"),
    ],
)
def test_a_forward_that_raises_says_where_its_inputs_come_from(
    source: InputsFrom, said: str, load: Callable[[str], ModuleType]
) -> None:
    from gradsmith.checking.options import Options
    from gradsmith.checking.run import examine
    from gradsmith.inputs.examples import Supply
    from gradsmith.lab import resolve

    module = load(rules()["forward-raised"].bad)
    supply = Supply(((module.example(), {}),), source)
    (finding,) = examine(resolve(module.Product), supply, Options(level="quick", lint=False)).findings
    assert said in (finding.advice or "")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gs.check(3), "cannot check 3"),
        (lambda: gs.check(torch.sin, torch.ones(2), level="qick"), "did you mean 'quick'?"),
        (lambda: gs.check(torch.sin, torch.ones(2), gradient="exakt"), "did you mean 'exact'?"),
        (lambda: gs.surrogate("strait-through"), "did you mean 'straight-through'?"),
        (lambda: gs.lint("nowhere.py"), "no such file or folder"),
    ],
)
def test_wrong_calls_get_one_sentence(call: Callable[[], object], said: str) -> None:
    with pytest.raises(gs.GradsmithError, match=re.escape(said)):
        call()


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ((torch.ones(2),), "none of the inputs requires grad"),
        ((torch.tensor([1.0, float("nan")], requires_grad=True),), "'input 0' contains NaN"),
        ((torch.empty(0, 3, requires_grad=True),), "is empty"),
        ((torch.eye(2).to_sparse().requires_grad_(),), "is sparse"),
    ],
)
def test_inputs_that_prove_nothing_are_unverified_in_words(inputs: tuple[torch.Tensor, ...], reason: str) -> None:
    (subject,) = gs.check(torch.sin, *inputs).subjects
    assert subject.verdict == "unverified"
    assert reason in subject.reason


def test_import_lint_and_help_do_not_load_torch(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "ops.py").write_text(swish("x"))
    for call in (["lint", str(tmp_path)], ["--help"], ["check", "--help"], ["rules"], ["explain", "inplace-grad"]):
        script = (
            f"import sys; sys.argv = ['gradsmith', *{call!r}]\n"
            "from gradsmith.cli import main\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "assert 'torch' not in sys.modules, 'torch was imported'\n"
            "assert 'rich' not in sys.modules, 'rich was imported'\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
