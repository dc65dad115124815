"""Calls that disturb each other: what one forward leaves outside ctx, and a later one overwrites, is found and named."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from gradsmith.checking.options import Options
from gradsmith.checking.run import examine_supplied
from gradsmith.findings import Finding, Report
from gradsmith.lab import Arguments, Lab, Settings, resolve
from gradsmith.lab.explore.other_calls import other_calls
from gradsmith.lab.measure.shared_state import disturbed, remembered
from gradsmith.lab.process.kept_values import pictured

X = "torch.randn(4, 3, dtype=torch.float64, requires_grad=True)"


def source(before: str, forward: str, backward: str, parameters: str, inputs: str) -> str:
    def indented(text: str) -> str:
        return "\n".join(f"        {line}" for line in text.strip().splitlines())

    return f"""
import torch

{before}

class Sub(torch.autograd.Function):
    kept = None

    @staticmethod
    def forward(ctx, {parameters}):
{indented(forward)}

    @staticmethod
    def backward(ctx, g):
{indented(backward)}


gradsmith_inputs = {{"Sub": lambda: ({inputs})}}
"""


# What makes calls differ -> (broken, mended).
PAIRS: dict[str, tuple[str, str]] = {
    "ids": (
        source(
            "",
            "Sub.kept = torch.cos(ids.to(x.dtype))\nreturn x * Sub.kept",
            "return g * Sub.kept, None",
            "x, ids",
            f"{X}, torch.arange(3)",
        ),
        source(
            "",
            "ctx.kept = torch.cos(ids.to(x.dtype))\nreturn x * ctx.kept",
            "return g * ctx.kept, None",
            "x, ids",
            f"{X}, torch.arange(3)",
        ),
    ),
    "a size": (
        source(
            "COUNT = 0",
            "global COUNT\nCOUNT = x.shape[0]\nreturn x / x.shape[0]",
            "return g / COUNT",
            "x",
            f"{X},",
        ),
        source("", "ctx.n = x.shape[0]\nreturn x / x.shape[0]", "return g / ctx.n", "x", f"{X},"),
    ),
    "an option": (
        source(
            "KEPT = {}",
            "KEPT['scale'] = 2.0 if double else 1.0\nreturn x * KEPT['scale']",
            "return g * KEPT['scale'], None",
            "x, double: bool = False",
            f"{X},",
        ),
        source(
            "KEPT = {}",
            "KEPT[double] = 2.0 if double else 1.0\nctx.double = double\nreturn x * KEPT[double]",
            "return g * KEPT[ctx.double], None",
            "x, double: bool = False",
            f"{X},",
        ),
    ),
    "a table that is made anew for another size": (
        source(
            "class Table:\n    values = torch.zeros(0)",
            "n = x.shape[1]\nif len(Table.values) != n:\n    Table.values = torch.arange(1.0, n + 1)\n"
            "ctx.rows = x.shape\nreturn x * Table.values",
            "n = ctx.rows[1]\nscale = Table.values.flip(0)[:1] * g.new_ones(n)\n"
            "return g * torch.arange(1.0, n + 1) * (scale / n)",
            "x",
            f"{X},",
        ),
        source(
            "class Table:\n    values = torch.zeros(0)\n\n"
            "def table(n):\n    if len(Table.values) != n:\n        Table.values = torch.arange(1.0, n + 1)\n"
            "    return Table.values",
            "return x * table(x.shape[1])",
            "return g * table(g.shape[1])",
            "x",
            f"{X},",
        ),
    ),
    "an update in place": (
        source(
            "CACHE = {}\n\ndef kept(w):\n    if id(w) not in CACHE:\n        CACHE[id(w)] = (w, w.detach().clone())\n"
            "    return CACHE[id(w)][1]",
            "ctx.w = w\nkept(w)\nreturn w * w",
            "return 2 * g * kept(ctx.w)",
            "w",
            f"{X},",
        ),
        source(
            "CACHE = {}\n\ndef kept(w):\n    key = id(w), w._version\n    if key not in CACHE:\n"
            "        CACHE[key] = (w, w.detach().clone())\n    return CACHE[key][1]",
            "ctx.w = w\nkept(w)\nreturn w * w",
            "return 2 * g * kept(ctx.w)",
            "w",
            f"{X},",
        ),
    ),
    "an update of a tensor that carries what was kept": (
        source(
            "",
            "if not hasattr(w, 'kept'):\n    w.kept = w.detach().exp()\nctx.w = w\nreturn w.exp()",
            "return g * ctx.w.kept",
            "w",
            f"{X},",
        ),
        source(
            "",
            "w.kept = w.detach().exp()\nctx.kept = w.kept\nreturn w.exp()",
            "return g * ctx.kept",
            "w",
            f"{X},",
        ),
    ),
}


@pytest.fixture
def check_state(load: Callable[[str], ModuleType]) -> Callable[[str], list[Finding]]:
    """What the one rule says of a source."""

    def run(text: str) -> list[Finding]:
        module = load(text)
        return state(
            examine_supplied(resolve(module.Sub), Options(select=("class-state",), debug=True, lint=False), module)
        )

    return run


def state(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.rule == "class-state"]


@pytest.mark.parametrize("name", PAIRS)
def test_a_call_that_takes_away_what_backward_needs_is_named(
    name: str, check_state: Callable[[str], list[Finding]]
) -> None:
    (found,) = check_state(PAIRS[name][0])
    assert found.severity == "error", found.message


@pytest.mark.parametrize("name", PAIRS)
def test_state_that_takes_nothing_away_is_no_defect(name: str, check_state: Callable[[str], list[Finding]]) -> None:
    assert not check_state(PAIRS[name][1])


def test_a_dict_that_two_calls_share_is_a_warning(check_state: Callable[[str], list[Finding]]) -> None:
    broken = source("", "kept['x'] = x\nreturn x * x", "return 2 * g * ctx.kept['x'], None", "x, kept", f"{X}, {{}}")
    broken = broken.replace("kept['x'] = x", "ctx.kept = kept\n        kept['x'] = x.detach()")
    (found,) = check_state(broken)
    assert found.severity == "warning" and "share" in found.message, found.message
    assert not check_state(broken.replace("ctx.kept = kept", "ctx.kept = {'x': x.detach()}"))


def test_running_averages_and_counters_are_no_defect(check_state: Callable[[str], list[Finding]]) -> None:
    moving = source(
        "COUNT = [0]\nMEAN = torch.zeros(())",
        "COUNT[0] += 1\nMEAN.mul_(0.9).add_(0.1 * x.detach().mean().to(MEAN.dtype))\nctx.save_for_backward(x)\nreturn x * x",
        "return 2 * g * ctx.saved_tensors[0]",
        "x",
        f"{X},",
    )
    assert not check_state(moving)


def test_the_message_says_what_is_shared_and_by_which_call(check_state: Callable[[str], list[Finding]]) -> None:
    (found,) = check_state(PAIRS["ids"][0])
    assert "`Sub.kept`" in found.message and "'ids'" in found.message


@pytest.mark.parametrize("name", ["ids", "a size", "an option", "an update in place"])
def test_what_the_user_keeps_is_put_back(name: str, load: Callable[[str], ModuleType]) -> None:
    module = load(PAIRS[name][0])
    target = resolve(module.Sub)
    lab = Lab(target, Arguments.of(module.gradsmith_inputs["Sub"](), names=target.names), Settings())
    elsewhere = lab.precise[1].replaced({0: lab.baseline.run.leaves[0].detach() * 2})
    other_calls(lab)  # finding sizes runs forward, as every other question about a Lab does
    before = {**vars(module), "Sub.kept": module.Sub.kept, "CACHE": dict(getattr(module, "CACHE", {}))}
    list(disturbed(lab))
    remembered(lab, elsewhere)
    after = {**vars(module), "Sub.kept": module.Sub.kept, "CACHE": dict(getattr(module, "CACHE", {}))}
    assert before.keys() == after.keys()
    assert all(before[key] is after[key] for key in before if key != "CACHE") and before["CACHE"] == after["CACHE"]


def test_what_is_written_to_is_seen_wherever_it_is_kept() -> None:
    class Keeper:
        def __init__(self) -> None:
            self.inner: dict[str, Any] = {"list": [1]}

    keeper = Keeper()
    before = pictured([("keeper", keeper)])
    assert before.changed(pictured([("keeper", keeper)])) == []
    keeper.inner["list"][0] = 2
    assert before.changed(pictured([("keeper", keeper)])) == ["keeper.inner['list'][0]"]
