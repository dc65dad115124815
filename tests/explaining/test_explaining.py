"""Where explanations appear: the command line, a block of code, pytest, a notebook."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.cli.explain_command import command
from gradsmith.explaining.entries import entries

pytest_plugins = ["pytester"]

OPS = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor

gradsmith_inputs = {"Scale": lambda: (torch.randn(3, requires_grad=True), 2.0)}

def run():
    Scale.apply(torch.randn(3, requires_grad=True), 2.0).sum().backward()
"""
SCALAR = "RuntimeError: grad can be implicitly created only for scalar outputs"


@pytest.fixture
def raised(tmp_path: Path) -> str:
    """The traceback of a Function in a file of the user's."""
    file = tmp_path / "ops.py"
    file.write_text(OPS)
    names: dict[str, object] = {"__name__": "ops"}
    exec(compile(OPS, str(file), "exec"), names)
    with pytest.raises(RuntimeError) as caught:
        eval("run()", names)
    return "".join(traceback.format_exception(caught.value))


def test_lint_of_the_function_that_the_traceback_names_comes_with_it(raised: str, tmp_path: Path) -> None:
    explained = gs.explain(raised)
    assert explained.function == f"{tmp_path / 'ops.py'}::Scale"
    assert [f.code for f in explained.report.findings] == ["GS101"]
    assert "line 11: Scale.backward returns 1 gradient" in explained.short()
    assert "GS101" in str(explained)
    json.dumps(explained.to_dict())


def test_check_of_it_too(raised: str) -> None:
    (subject,) = gs.explain(raised, check=True).report.subjects
    assert (subject.name, subject.verdict) == ("Scale", "refuted")


def test_without_a_traceback_there_is_no_function() -> None:
    assert gs.explain(SCALAR).function == ""


def test_the_command_explains_an_argument_and_standard_input(raised: str) -> None:
    by_argument = CliRunner().invoke(command, [SCALAR])
    assert (by_argument.exit_code, by_argument.output.split()[0]) == (0, "scalar-outputs-only")
    by_input = CliRunner().invoke(command, ["-", "--no-check", "--format", "json"], input=raised)
    told = json.loads(by_input.output)
    assert (told["error"], told["report"]["findings"][0]["code"]) == ("incorrect-number-of-gradients", "GS101")
    assert told["cause"] and told["remedy"] and told["bad"] and told["good"]


def test_an_unknown_error_says_so_and_exits_1() -> None:
    done = CliRunner().invoke(command, ["KeyError: 'weight'"])
    assert done.exit_code == 1
    assert done.output.startswith("unknown: ")


def test_nothing_to_explain_is_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradsmith", "explain"], input="", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "gradsmith explain RULE" in done.stderr


def test_the_name_of_an_entry_shows_its_page_and_is_not_the_name_of_a_rule() -> None:
    assert "Remedy" in CliRunner().invoke(command, ["backward-twice"]).output
    assert not set(entries()) & set(rules())


def test_explaining_needs_no_torch() -> None:
    script = f"import sys, gradsmith as gs\ngs.explain({SCALAR!r})\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_block_adds_it_to_the_error_once_and_the_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="scalar outputs") as caught, gs.explain_errors(), gs.explain_errors():
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    (note,) = caught.value.__notes__
    assert note.startswith("gradsmith: Backward was called on a tensor with more than one element")
    with pytest.raises(KeyError) as other, gs.explain_errors():
        raise KeyError("weight")
    assert not hasattr(other.value, "__notes__")


def test_pytest_shows_it_below_the_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ops=OPS)
    pytester.syspathinsert()
    pytester.makepyfile("import ops\ndef test_scale(): ops.run()\ndef test_other(): {}['x']\n")
    shown = pytester.runpytest_subprocess("-q")
    shown.stdout.fnmatch_lines(["*- gradsmith explains -*", "gradsmith: backward returned more or fewer*", "GS101 *"])
    assert str(shown.stdout).count("gradsmith explains") == 1
    assert "gradsmith explains" not in str(pytester.runpytest_subprocess("-q", "--no-gradsmith-explain").stdout)


def test_a_notebook_shows_it_below_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "gradsmith")
    shell.run_cell("import torch\ntorch.ones(3, requires_grad=True).exp().backward()")
    shown = capsys.readouterr().out
    assert shown.index("only for scalar outputs") < shown.index("gradsmith: Backward was called on a tensor")
    shell.run_line_magic("unload_ext", "gradsmith")
    shell.run_cell("torch.ones(3, requires_grad=True).exp().backward()")
    assert "gradsmith:" not in capsys.readouterr().out
