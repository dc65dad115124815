"""The pytest plugin, run on small projects by pytest's own `pytester`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from forks import FORKS

pytest_plugins = ["pytester"]


def ran(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """pytest in a process of its own, which has torch imported already."""
    done = FORKS.run("-m", "pytest", f"--basetemp={project.path / 'temporary'}", *words, cwd=project.path)
    return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0.0)


OPS = """
import torch

class Good(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return 2 * x * grad_output

class Bad(Good):
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return 3 * x * grad_output

def x():
    return torch.randn(2, 3, requires_grad=True)
"""
TESTS = """
from ops import Good, Bad, x

def test_good():
    assert Good.apply(x()).shape == (2, 3)

def test_bad():
    assert Bad.apply(x()).shape == (2, 3)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(ops=OPS)
    pytester.makeini("[pytest]\naddopts = --gradsmith-budget=600\n")  # by the clock: 30 s are little on a busy machine
    pytester.syspathinsert()
    return pytester


def test_functions_that_tests_exercise_are_items_of_their_own(project):
    project.makepyfile(test_ops=TESTS)
    result = ran(project, "-q", "--gradsmith", "--junitxml", "out.xml")
    result.assert_outcomes(passed=3, failed=1)
    summary = "FAILED gradsmith::ops.Bad - wrong-gradient at ops.py:1[0-9]:*"
    result.stdout.fnmatch_lines(["*_ gradsmith::ops.Bad _*", "*wrong-gradient*", summary])
    result.stdout.fnmatch_lines(["2 custom gradients checked in * s of the 600 s that checks may take*"])
    percentages = re.findall(r"\[ *(\d+)%\]", result.stdout.str())
    assert percentages[-1] == "100" and max(map(int, percentages)) == 100
    text = (project.path / "out.xml").read_text()
    assert text.count("<testcase") == 4
    assert "ops.Bad" in text


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.deep)])
def test_the_same_under_xdist(project, workers):
    project.makepyfile(test_ops=TESTS)
    result = project.runpytest_subprocess("-q", "--gradsmith", "-n", workers)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["FAILED gradsmith::ops.Bad*"])


UNVERIFIED = """
import torch

class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output

class Idle(Round):
    pass
"""


@pytest.mark.parametrize(
    ("option", "outcomes"),
    [
        pytest.param("fail", {"failed": 1}, marks=pytest.mark.deep),
        ("skip", {"skipped": 1}),
        pytest.param("xfail", {"xfailed": 1}, marks=pytest.mark.deep),
    ],
)
def test_what_is_not_verified_counts_as_asked_and_what_no_test_runs_is_told(project, option, outcomes):
    project.makepyfile(
        rounding=UNVERIFIED,
        test_round="import torch\nfrom rounding import Round\n\ndef test_round():\n    Round.apply(torch.randn(3, requires_grad=True))\n",
    )
    result = ran(project, "-rA", "--gradsmith", f"--gradsmith-unverified={option}")
    result.assert_outcomes(passed=1, **outcomes)
    result.stdout.fnmatch_lines(["*not verified: looks like a surrogate*"])
    result.stdout.fnmatch_lines(
        [
            "no test runs 3 of the project's custom gradients:",
            "  ops.py:*: Good",
            "  ops.py:*: Bad",
            "  rounding.py:*: Idle",
        ]
    )


def test_without_time_nothing_is_said_to_be_verified(project):
    project.makepyfile(test_ops=TESTS)
    result = ran(project, "-rA", "--gradsmith", "--gradsmith-budget=0")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["*not tried: the time for it was spent*(--gradsmith-budget gives more)*"])
    result.stdout.fnmatch_lines(["2 custom gradients checked in *; 2 of them could not be judged in that time"])


def test_without_the_option_nothing_is_added(project):
    project.makepyfile(test_ops=TESTS)
    ran(project, "-q").assert_outcomes(passed=2)


def test_a_project_that_runs_no_function_gets_no_item_and_no_torch(project):
    project.makepyfile(test_plain="import sys\n\ndef test_plain():\n    assert 'torch' not in sys.modules\n")
    project.runpytest_subprocess("-q", "--gradsmith").assert_outcomes(passed=1)


def test_a_torch_that_is_too_old_is_one_sentence(project):
    (project.mkdir("torch") / "version.py").write_text("__version__ = '2.5.1+cpu'\n")
    (project.path / "torch" / "__init__.py").touch()
    project.makepyfile(test_plain="def test_plain():\n    pass\n")
    own = {**os.environ, "PYTHONPATH": str(project.path)}
    call = [sys.executable, "-m", "pytest", "-q", "--gradsmith"]
    done = subprocess.run(call, cwd=project.path, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    said = "ERROR: pytest --gradsmith needs PyTorch 2.6 or newer, and 2.5.1+cpu is installed here; run: pip install"
    assert done.stderr.strip().startswith(said) and "Traceback" not in done.stderr


# What any run loads: names, a version, and what notes a call.
LIGHT = {
    *("gradsmith.about", "gradsmith.showing", "gradsmith.pytest_plugin", "gradsmith.torch_here"),
    *("gradsmith.inputs", "gradsmith.inputs.latest", "gradsmith.inputs.scaling"),
    *("gradsmith.lab", "gradsmith.lab.process", "gradsmith.lab.process.torch_says"),
    *("gradsmith.cells", "gradsmith.lab.subject"),
    *("gradsmith.lab.subject.defined", "gradsmith.lab.subject.signature"),
    *(
        "gradsmith.errors",
        "gradsmith.errors.incorrect_number_of_gradients",
    ),  # wordings that torch_says knows from there
    *("gradsmith.errors.invalid_gradient_shape", "gradsmith.errors.leaf_in_place"),
}


def test_where_no_function_runs_little_of_gradsmith_is_loaded(project):
    """Fixed costs: torch is there, a Function is defined, and none is called."""
    project.makeconftest(
        """
        import sys

        def pytest_unconfigure():
            print("LOADED", *sorted(m for m in sys.modules if m.startswith("gradsmith.")))
        """
    )
    project.makepyfile(test_idle="import ops\n\ndef test_idle():\n    pass\n")
    result = project.runpytest_subprocess("-q", "-s", "--gradsmith")
    result.assert_outcomes(passed=1)
    loaded = {name for line in result.outlines if line.startswith("LOADED") for name in line.split()[1:]}
    others = {m for m in loaded if not m.startswith("gradsmith.recording")}
    assert "gradsmith.recording.tape" in loaded
    assert others <= LIGHT


def test_marker_fixture_and_one_line_test(project):
    project.makepyfile(
        test_one="""
        import gradsmith as gs, pytest
        from ops import Good, Bad, x

        @pytest.mark.gradsmith(level="quick")
        def test_marked():
            Bad.apply(x())

        @pytest.mark.gradsmith
        def test_marked_and_right():
            Good.apply(x())

        def test_fixture(gradsmith):
            assert gradsmith(Good, x()).ok

        def test_line():
            gs.assert_gradients(Bad, x())
        """
    )
    result = ran(project, "-q", "--strict-markers")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["E *GradientError*", "E *wrong-gradient*Bad.backward*"])
    result.stdout.no_fnmatch_line("*asserting.py*")
