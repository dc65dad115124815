"""gradcheck drop-in, the five-step walk, call order, surrogates, references, isolation from Python."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from forks import FORKS
from torch import Tensor

import gradsmith as gs
from gradsmith.catalog import rules

CUBE = rules()["wrong-gradient"]


def x() -> torch.Tensor:
    return torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


def test_gradcheck_takes_torchs_arguments(load: Callable[[str], ModuleType]) -> None:
    good, bad = load(CUBE.good).Cube, load(CUBE.bad).Cube
    assert gs.gradcheck(good.apply, (x(),), eps=1e-6, atol=1e-5, fast_mode=True)
    assert not gs.gradcheck(bad.apply, x(), raise_exception=False)
    with pytest.raises(gs.GradientError, match=r"Cube\.backward"):
        gs.gradcheck(bad.apply, (x(),))
    with pytest.raises(gs.GradsmithError, match="fast_mode"):
        gs.gradcheck(good.apply, (x(),), fastmode=True)


def test_a_reference_is_the_truth_where_forward_is_opaque(load: Callable[[str], ModuleType]) -> None:
    source = CUBE.good.replace("return x**3", "return torch.from_numpy(x.detach().numpy() ** 3)")
    assert gs.check(load(source).Cube, x(), reference=lambda t: t**3).ok


def test_the_walk_shows_sizes_and_one_element_with_both_numbers(load: Callable[[str], ModuleType]) -> None:
    report = gs.check(load(CUBE.bad).Cube, x(), steps=True, level="quick")
    steps = report.subjects[0].measured["steps"]
    assert [s["title"] for s in steps] == [
        "forward runs",
        "backward runs",
        "gradients have a sane size",
        "one element by hand",
    ]
    assert steps[-1]["state"] == "odd"
    assert "backward returned" in steps[-1]["seen"][0]
    assert "step by step" in str(report)


def test_the_walk_goes_to_the_input_that_is_wrong(load: Callable[[str], ModuleType]) -> None:
    source = (
        "import torch\n\n\nclass Scaled(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, w):\n"
        "        ctx.save_for_backward(x, w)\n        return x * w\n\n    @staticmethod\n    def backward(ctx, g):\n"
        "        x, w = ctx.saved_tensors\n        return g * w, 3 * g * x\n"
    )
    report = gs.check(load(source).Scaled, x(), x(), steps=True, level="quick")
    steps = report.subjects[0].measured["steps"]
    assert all(step["advice"] for step in steps)
    assert "'w'" in steps[1]["advice"]
    assert steps[-1]["seen"][0].startswith("at w[")
    assert steps[-1]["state"] == "odd"


def test_the_walk_goes_to_the_explored_example_that_is_wrong(load: Callable[[str], ModuleType]) -> None:
    source = (
        "import torch\n\n\nclass Far(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x * 2 if float(x.max()) > 90 else x * 3\n\n    @staticmethod\n    def backward(ctx, g):\n"
        "        return g * 3\n"
    )
    report = gs.check(load(source).Far, x(), steps=True, select=("wrong-gradient", "value-dependent"))
    steps = report.subjects[0].measured["steps"]
    assert steps[0]["title"].startswith("forward runs with 'x'")
    assert "backward returned" in steps[-1]["seen"][0]
    assert steps[-1]["state"] == "odd"


def test_the_walk_goes_to_a_wrong_number_before_what_is_only_remarked(load: Callable[[str], ModuleType]) -> None:
    source = (
        "import torch\n\n\nclass Sliding(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, step=1):\n"
        "        ctx.save_for_backward(x)\n        ctx.step = step\n        return x[::step] ** 2 if step else x * 1\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        if ctx.step == 0:\n"
        "            return g[:1].reshape(99), None\n        full = torch.zeros_like(x)\n"
        "        full[:: ctx.step] = g * 2\n        return full * (x if ctx.step == 1 else 1), None\n"
    )
    one = torch.randn(6, dtype=torch.float64, requires_grad=True)
    report = gs.check(load(source).Sliding, one, steps=True, select=("wrong-gradient", "option-dependent", "assumes"))
    assert {f.severity for f in report.findings if f.rule in ("option-dependent", "assumes")} >= {"warning"}
    steps = report.subjects[0].measured["steps"]
    assert "`step=2`" in steps[0]["title"]
    assert steps[-1]["state"] == "odd"


def test_a_caller_waits_for_what_it_calls(tmp_path: Path) -> None:
    outer = (
        "\n\nclass Above(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return 2 * x**3\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n"
        "        with torch.enable_grad():\n            leaf = x.detach().requires_grad_()\n"
        "            y = Cube.apply(leaf)\n        return 2 * torch.autograd.grad(y, leaf, g)[0]\n\n\n"
        "gradsmith_inputs['Above'] = gradsmith_inputs['Cube']\n"
    )
    (tmp_path / "ops.py").write_text(outer.join([CUBE.bad, ""]))
    words = ["check", "ops.py", "--format", "json", "--level", "quick", "--no-cache"]
    done = FORKS.run("-m", "gradsmith", *words, cwd=tmp_path)
    subjects = json.loads(done.stdout)["subjects"]
    assert [(s["name"], s["verdict"]) for s in subjects] == [("Cube", "refuted"), ("Above", "unverified")]
    assert "it calls Cube, which is wrong" in subjects[1]["reason"]


@pytest.mark.parametrize("kind", ["straight-through", "custom"])
def test_a_declared_surrogate_is_verified_by_its_contract(kind: str, load: Callable[[str], ModuleType]) -> None:
    source = rules()["undeclared-surrogate"].bad
    Round = load(source).Round
    assert gs.check(Round, x()).subjects[0].verdict == "unverified"
    assert gs.check(Round, x(), gradient="surrogate").ok
    assert gs.check(gs.surrogate(kind)(Round), x()).ok


def test_isolation_from_python_gives_the_same_report(load: Callable[[str], ModuleType]) -> None:
    bad = load(CUBE.bad).Cube
    given = x()
    here, there = gs.check(bad, given, level="quick"), gs.check(bad, given, level="quick", isolate=True)
    assert [f.rule for f in there.errors] == [f.rule for f in here.errors] == ["wrong-gradient"]
    assert there.errors[0].evidence["element"] == list(here.errors[0].evidence["element"])


def test_shared_inputs_and_nested_inputs() -> None:
    t = x()
    assert gs.check(lambda a, b: a * b.sin(), t, t, level="quick").ok
    assert gs.check(lambda d: {"y": d["a"] * d["b"][0]}, {"a": x(), "b": [x(), None]}, level="quick").ok


def test_the_users_process_is_left_as_it_was() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    t = x()
    t.grad = torch.ones_like(t)
    state = torch.get_rng_state()
    gs.check(torch.sin, t, level="quick")
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(before, state)
    assert torch.equal(t.grad, torch.ones_like(t))


class _SafeRoot(torch.autograd.Function):
    """The square root with slope 0 at 0, where forward has none that is finite."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.where(x < 0, 0, x).sqrt()  # a clamp hands back nothing at its bound, or everything: torch decides
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output / (2 * y.clamp(min=1e-30)), torch.zeros_like(grad_output))


class _HalvedRoot(_SafeRoot):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return _SafeRoot.backward(ctx, grad_output) / 2


def test_elements_without_a_finite_slope_do_not_hide_the_others() -> None:
    x = torch.tensor([0.0, 1.0, 4.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    report = gs.check(_SafeRoot, x, level="quick")
    assert report.subjects[0].verdict == "verified"
    assert any("no finite slope at x[0], x[3]: left out" in note for note in report.notes), report.notes
    assert gs.check(_HalvedRoot, x, level="quick").subjects[0].verdict == "refuted"


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 0.5 * (1 + torch.erf(x / 2**0.5))

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        density = torch.exp(-0.5 * x.float() ** 2) / (2 * torch.pi) ** 0.5
        return grad_output * (0.5 * (1 + torch.erf(x / 2**0.5)) + x * density)


def test_one_factor_in_float32_is_named() -> None:
    """Too little for directional differences; the user's own forward under autograd sees it."""
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    (finding,) = gs.check(_Gelu, x, level="quick").findings
    assert (finding.rule, finding.cause, finding.severity) == ("wrong-gradient", "low-precision", "warning")


class _Checkpointed(torch.autograd.Function):
    """As many libraries have it: the layer, and its parameters once more, because only arguments get gradients."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[Tensor], Tensor], x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.run = run
        ctx.save_for_backward(x, *parameters)
        return run(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, *parameters = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.run(x)
        wanted = [t for t in (x, *parameters) if t.requires_grad]
        found = dict(zip(map(id, wanted), torch.autograd.grad(y, wanted, grad_output)))
        return (None, *(found.get(id(t)) for t in (x, *parameters)))


@pytest.mark.parametrize("kind", ["module", "method", "closure", "partial"])
def test_parameters_that_another_argument_holds_stay_the_same_tensors(kind: str) -> None:
    layer = torch.nn.Linear(3, 2, dtype=torch.float64)
    run = {
        "module": layer,
        "method": layer.forward,
        "closure": lambda t: layer(t).tanh(),
        "partial": functools.partial(torch.nn.functional.linear, weight=layer.weight, bias=layer.bias),
    }[kind]
    report = gs.check(_Checkpointed, run, x(), *layer.parameters(), level="quick")
    assert report.subjects[0].verdict == "verified", report.findings


class OverRanks(torch.autograd.Function):
    """Cannot run here: nobody started a process group."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.clone()
        torch.distributed.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output


def test_a_forward_that_needs_a_process_group_is_not_accused() -> None:
    report = gs.check(OverRanks, torch.randn(3, dtype=torch.float64, requires_grad=True))
    assert [(f.rule, f.severity) for f in report.findings] == [("forward-raised", "info")]
    assert report.subjects[0].verdict == "unverified"
