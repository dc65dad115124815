"""Which lines ran and which sides of conditions were taken, as a report tells it; and how the other side is reached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import Function

import gradsmith as gs
from gradsmith.lab import Lab, Settings, resolve
from gradsmith.lab.explore.coverage.bytecode import shape_of
from gradsmith.lab.explore.coverage.choices import choices
from gradsmith.lab.explore.coverage.example import coverage_of
from gradsmith.lab.explore.coverage.point import Point, told
from gradsmith.lab.explore.coverage.tracing import InstructionTrace, tracing
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.run import Allowance, Spent
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.source import knowledge

VALUES = ("wrong-gradient", "value-dependent", "option-dependent", "assumes")


def randn(*shape: int) -> torch.Tensor:
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return made.requires_grad_()


def traced(function: Callable[..., Any], *args: Any) -> tuple[InstructionTrace, CodeType]:
    code = function.__code__
    with tracing(lambda other: other is code, {code}) as trace:
        function(*args)
    return trace, code


def taken(function: Callable[..., Any], *args: Any) -> set[tuple[str, str]]:
    """What was asked and which way it went."""
    trace, code = traced(function, *args)
    jumps = shape_of(code).jumps
    return {(jumps[start].what, dict(jumps[start].sides)[to]) for _, start, to in trace.jumps}


class Doubled(Function):
    """Doubles beyond 50, of which backward knows; a bias, a loop, and a clamp that only far inputs reach."""

    @staticmethod
    def forward(ctx, x, rounds=2, bias=None):
        y = x.abs()
        if float(x.max()) > 50:
            y = y * 2
        for _ in range(rounds):
            y = y + x
        if bias is not None:
            y = y + bias
        ctx.save_for_backward(x)
        ctx.rounds = rounds
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = x.sign()
        if float(x.max()) > 50:
            slope = slope * 2
        return g * (slope + ctx.rounds), None, g if ctx.needs_input_grad[2] else None


class Forgotten(Doubled):
    """The same, and backward forgets that it doubles."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.sign() + ctx.rounds), None, g if ctx.needs_input_grad[2] else None


class Unreachable(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if bool((x.square() < 0).any()):
            return x * 3
        return x * x.square().add(1).abs()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (3 * x * x + 1)


# --- lines and tests --------------------------------------------------------------------------------------------------


def ternary(x: int | None) -> int | None:
    return None if x is None else -x if x < 0 else x


def test_both_sides_of_an_expression_in_one_line_are_told_apart() -> None:
    assert ("x < 0", "true") in taken(ternary, -1)
    assert ("x < 0", "false") in taken(ternary, 1)
    assert ("x", "None") in taken(ternary, None)


def both(a: bool, b: bool) -> int:
    if a and not b:
        return 1
    return 0


def test_each_part_of_an_and_is_a_condition_of_its_own() -> None:
    assert taken(both, True, True) == {("a", "true"), ("b", "true")}
    assert taken(both, False, True) == {("a", "false")}


def guarded(n: int) -> int:
    if n < 0:
        raise ValueError("negative")
    assert n < 100, "too large"
    try:
        return n
    except ValueError:
        return -1


def test_lines_that_only_raise_or_only_catch_are_not_counted() -> None:
    shape = shape_of(guarded.__code__)
    first = guarded.__code__.co_firstlineno
    assert not shape.jumps
    assert {line - first for line in shape.numbers} <= {1, 3, 4, 5}


def looping(n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    for _ in range(3):
        total += 1
    while n > 0:
        n -= 1
    return total


@pytest.mark.parametrize(("rounds", "words"), [(0, "0 times"), (1, "exactly once"), (4, "more than once")])
def test_loops_are_counted_as_none_one_or_many(rounds: int, words: str) -> None:
    trace, code = traced(looping, rounds)
    first = code.co_firstlineno
    assert {(line - first, how) for _, line, how in trace.rounds} >= {(2, words), (6, words)}


def test_a_loop_over_what_is_written_down_has_no_other_count() -> None:
    loops = [jump for jump in shape_of(looping.__code__).jumps.values() if jump.loop]
    first = looping.__code__.co_firstlineno
    assert {jump.line - first for jump in loops if not jump.varies} == {4}


def left_early(n: int) -> int:
    for i in range(n):
        if i == 0:
            return i
    return -1


def test_a_loop_that_is_left_by_return_ran_once() -> None:
    assert {how for _, _, how in traced(left_early, 5)[0].rounds} == {"exactly once"}


def test_another_tracer_sees_everything_and_is_put_back() -> None:
    seen: list[tuple[str, str]] = []

    def theirs(frame: FrameType, event: str, arg: Any) -> Any:
        seen.append((frame.f_code.co_name, event))
        return theirs

    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        trace, _ = traced(looping, 2)
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is theirs
    assert trace.rounds
    assert {("looping", "call"), ("looping", "line"), ("looping", "return")} <= set(seen)


def test_a_tracer_that_installs_itself_when_it_is_called_is_borne() -> None:
    class Jealous:
        def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
            if event == "call":  # as coverage.py's does
                sys.settrace(self)
            return self

    before, jealous = sys.gettrace(), Jealous()
    sys.settrace(jealous)
    try:
        trace, _ = traced(looping, 2)
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is jealous
    assert len(trace.rounds) == 3


def test_no_tracer_stays_where_the_subject_raises() -> None:
    before = sys.gettrace()
    with pytest.raises(ValueError, match="negative"):
        traced(guarded, -1)
    assert sys.gettrace() is before


# --- operations -------------------------------------------------------------------------------------------------------

BOTH = torch.tensor([-30.0, -1.0, -0.1, 0.1, 1.0, 4.0, 30.0])
ONE = torch.tensor([0.3])
PIECEWISE: dict[str, Callable[[torch.Tensor], Any]] = {
    "comparison": lambda x: x > 0.5,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp_min": lambda x: x.clamp(min=0.5),
    "abs": torch.abs,
    "sign": torch.sign,
    "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "minimum": lambda x: torch.minimum(x, torch.zeros_like(x)),
    "max": lambda x: torch.max(x, torch.zeros_like(x)),
    "min": lambda x: torch.min(x, torch.zeros_like(x)),
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)),
    "fmin": lambda x: torch.fmin(x, torch.zeros_like(x)),
    "sgn": torch.sgn,
    "signbit": torch.signbit,
    "heaviside": lambda x: torch.heaviside(x, torch.zeros_like(x)),
    "prelu": lambda x: F.prelu(x, torch.tensor(0.2)),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "celu": F.celu,
    "selu": F.selu,
    "where": lambda x: torch.where(x.bool() & (x > 0.5), x, x),
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.5, 1.0),
    "softplus": F.softplus,
    "huber_loss": lambda x: F.huber_loss(x, torch.zeros_like(x)),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, torch.zeros_like(x)),
    "masked_fill": lambda x: x.masked_fill(torch.logical_not(x < 0.5), 1.0),
    "masked_select": lambda x: x.masked_select(torch.logical_not(x < 0.5)),
    "index": lambda x: x[torch.logical_not(x < 0.5)],
}


def sides(of: Callable[[torch.Tensor], Any], x: torch.Tensor) -> dict[str, bool]:
    with OperationTape(path=__file__, aten_only=True) as tape:
        of(x)
    found: dict[str, bool] = {}
    for choice in choices(iter(tape.operations)):
        for side, took in choice.sides.items():
            found[side] = found.get(side, False) or took
    return found


def test_every_operation_that_is_known_to_choose_is_among_them() -> None:
    """What a reduction chooses is a place and no side; the other two run inside prelu and rrelu."""
    known = knowledge.PIECEWISE | knowledge.CHOOSES_INSIDE | knowledge.CLAMPS
    assert known - PIECEWISE.keys() == {"amin", "amax", "clip", "clamp_max", "_prelu_kernel", "rrelu_with_noise"}


@pytest.mark.parametrize("name", PIECEWISE)
def test_every_side_of_an_operation_that_chooses_is_known(name: str) -> None:
    assert len(sides(PIECEWISE[name], BOTH)) >= 2
    assert all(sides(PIECEWISE[name], BOTH).values())
    assert not all(sides(PIECEWISE[name], ONE).values())


def test_a_mask_that_a_comparison_made_is_counted_once() -> None:
    assert set(sides(lambda x: torch.where(x > 0, x, -x), BOTH)) == {"was true", "was false"}


# --- what a report says -----------------------------------------------------------------------------------------------


def test_what_never_happened_is_said_in_the_readers_own_words() -> None:
    target = resolve(Doubled)
    lab = Lab(
        target, Arguments.of((randn(3).detach().abs().requires_grad_(), 2, None), {}, target.names), Settings(seed=0)
    )
    first = Doubled.forward.__code__.co_firstlineno
    missed = told(coverage_of(lab).to_json())["not reached"]
    assert f"line {first + 4} never ran" in missed
    assert f"line {first + 2}: `x.abs()` never saw a negative number" in missed
    assert f"line {first + 3}: `float(x.max()) > 50` was never true" in missed
    assert f"line {first + 5}: the loop never ran exactly once" in missed
    assert f"line {first + 7}: `bias` was always None" in missed


def test_the_other_side_is_reached_and_right_code_stays_right() -> None:
    report = gs.check(Doubled, randn(3), 2, None, coverage=True)
    (subject,) = report.subjects
    assert not report.errors
    assert subject.verdict == "verified"
    assert subject.coverage["lines reached"] == subject.coverage["lines"]
    assert not any("x.max()" in sentence for sentence in subject.coverage["not reached"])
    assert "coverage Doubled" in str(report)


def test_a_mistake_behind_a_far_condition_is_found_no_further_away_than_needed() -> None:
    report = gs.check(Forgotten, randn(3), 2, None, select=VALUES)
    (error,) = report.errors
    assert error.rule == "value-dependent"
    step = error.evidence["moves"][0]
    assert step["move"] == "Adjust"
    assert float(randn(3).max()) * step["factor"] + step["shift"] < 200
    drawn = error.evidence["gradients"]  # where it is wrong, not at the example
    assert drawn["shape"] == [3]
    assert drawn["claimed"] != drawn["true"]


def test_what_cannot_be_reached_stands_under_the_verdict() -> None:
    report = gs.check(Unreachable, randn(3), select=VALUES)
    (subject,) = report.subjects
    line = Unreachable.forward.__code__.co_firstlineno + 4
    assert subject.verdict == "verified"
    assert f"line {line} never ran" in subject.coverage["not reached"]
    assert f"Not reached: line {line} never ran" in str(report)
    assert subject.to_dict()["coverage"]["points"]


def test_the_same_seed_gives_the_same_coverage() -> None:
    one, other = (gs.check(Doubled, randn(3), 2, None, select=VALUES).subjects[0] for _ in range(2))
    assert one.coverage == other.coverage
    assert one.explored["steps"] == other.explored["steps"]


def test_an_example_is_covered_without_exploring_where_it_is_asked_for() -> None:
    report = gs.check(Doubled, randn(3), 2, None, level="quick", select=VALUES, coverage=True)
    assert report.subjects[0].coverage["lines"] > report.subjects[0].coverage["lines reached"]
    assert gs.check(Doubled, randn(3), 2, None, level="quick", select=VALUES).subjects[0].coverage == {}


def test_what_one_example_reaches_counts_for_all() -> None:
    point = Point(3, "test", "x > 0", "true")
    row = {"line": 3, "sort": "test", "what": "x > 0", "side": "true", "phase": ""}
    assert told([{**row, "state": "never"}])["not reached"] == [point.missed()]
    assert told([{**row, "state": "never"}, {**row, "state": "judged"}])["not reached"] == []


def test_lines_of_an_inherited_forward_are_those_of_its_own_file(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    file = tmp_path / "base.py"
    file.write_text(
        "import torch\n\n\nclass Base(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        if x.ndim > 7:\n            return x + x\n        return 2 * x\n"
    )
    exec(compile(file.read_text(), str(file), "exec"), names)

    class Twice(names["Base"]):
        @staticmethod
        def backward(ctx, g):
            return 2 * g

    covered = gs.check(Twice, randn(3), level="quick", select=VALUES, coverage=True).subjects[0].coverage
    assert "line 8 of base.py never ran" in covered["not reached"]
    own = Twice.backward.__code__.co_firstlineno + 2
    assert {(p["line"], p.get("path")) for p in covered["points"] if p["sort"] == "line"} == {
        (own, None),
        *((line, str(file)) for line in (7, 8, 9)),
    }


def test_the_command_lists_what_was_not_reached(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from gradsmith.cli.check_command import command

    file = tmp_path / "ops.py"
    file.write_text(
        "import torch\n\n\nclass Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        if x.ndim > 7:\n            return x + x\n        return 2 * x\n\n    @staticmethod\n"
        "    def backward(ctx, g):\n        return 2 * g\n\n\n"
        'gradsmith_inputs = {"Twice": lambda: (torch.randn(3, requires_grad=True),)}\n'
    )
    result = CliRunner().invoke(command, [str(file), "--level", "quick", "--coverage"])
    assert "coverage Twice: 3 of 4 lines, 1 of 2 sides of conditions" in result.output
    assert "line 8 never ran" in result.output


class DeadRelu(Function):
    """A ReLU that is dead at the example of one element, and whose gradient is twice too large where it is not."""

    wrong = True

    @staticmethod
    def forward(ctx, x, weight):
        y = (x @ weight).relu()
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight, y = ctx.saved_tensors
        h = torch.where(y > 0, g, 0)
        return h @ weight.mT * (2 if DeadRelu.wrong else 1), x.mT @ h


@pytest.mark.parametrize("wrong", [True, False])
def test_a_dead_relu_of_one_element_comes_to_life(wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeadRelu, "wrong", wrong)
    x = torch.tensor([[1.5]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([[-0.8]], dtype=torch.float64, requires_grad=True)
    report = gs.check(DeadRelu, x, weight, select=VALUES)
    assert [f.rule for f in report.errors] == (["value-dependent"] if wrong else [])


def test_a_single_number_beside_a_tensor_keeps_its_sign() -> None:
    """A temperature: below 0 forward is finite and means nothing."""

    class Tempered(Function):
        @staticmethod
        def forward(ctx, x, temperature):
            ctx.save_for_backward(x, temperature)
            return (x / temperature.abs()).exp()

        @staticmethod
        def backward(ctx, g):
            x, temperature = ctx.saved_tensors
            h = g * (x / temperature).exp()
            return h / temperature, -(h * x / temperature**2).sum().reshape(1)

    temperature = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    report = gs.check(Tempered, randn(3), temperature, select=VALUES)
    assert not report.errors


def test_a_condition_inside_a_branch_is_searched_around_the_example_that_took_the_branch() -> None:
    class Act(Function):
        @staticmethod
        def forward(ctx, x, kind="square"):
            ctx.save_for_backward(x)
            ctx.kind = kind
            if kind == "line":
                return x * 2 if x.norm() > 50 else x * 3
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            if ctx.kind == "line":
                return grad_output * (5 if x.norm() > 50 else 3), None
            return 2 * x * grad_output, None

    report = gs.check(Act, randn(4, 3), select=VALUES)
    (found,) = [f for f in report.findings if f.severity == "error"]
    assert "`kind='line'`" in found.message and "'x' times -" in found.message


class ClampedFar(Function):
    """Beyond 50 it is clamped between two bounds: at the example nothing is open but lines."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if float(x.max()) > 50:
            return x.clamp(-20, 20)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if float(x.max()) > 50:
            return g * ((x >= -20) & (x <= 20))
        return g * 2


def test_operations_in_a_line_that_runs_for_the_first_time_are_seen() -> None:
    subject = gs.check(ClampedFar, randn(4), gradient="exact", isolate=False).subjects[0]
    assert subject.verdict == "verified"
    sides = {
        (p["what"], p["side"]) for p in subject.coverage["points"] if p["sort"] == "operation" and p["state"] != "never"
    }
    clamped = {
        "saw a number above its upper bound",
        "saw a number below its lower bound",
        "saw a number within its bounds",
    }
    assert {side for what, side in sides if what == "x.clamp(-20, 20)"} == clamped, sides


class Asked(Function):
    """What no backward can see, and what only other precisions and calls without a gradient show."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        if not x.requires_grad:
            return x * factor
        if x.dtype == torch.float16:
            return (x.float() * factor).half()
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output is None:
            return None, None
        found = grad_output * ctx.factor if ctx.needs_input_grad[0] else None
        return found, grad_output.sum() if ctx.needs_input_grad[1] else None


def test_sides_that_no_backward_takes_are_not_counted() -> None:
    report = gs.check(Asked, randn(4, 3), 2.0, select=VALUES)
    coverage = report.subjects[0].coverage
    assert coverage["not reached"] == []
    assert {(p["what"], p["side"]) for p in coverage["points"] if "needs_input_grad" in p["what"]} == {
        ("ctx.needs_input_grad[0]", "true"), ("ctx.needs_input_grad[1]", "false")
    }  # fmt: skip


def test_what_ran_is_counted_although_the_gradient_could_not_be_settled() -> None:
    lab = Lab(resolve(Doubled), Arguments.of((randn(3, 4),), {}, ("x",)), Settings())
    lab._spent = Spent(Allowance(1))  # as after a judgement that took more runs than it has
    assert any(point.sort == "line" for point in coverage_of(lab).ran)
