"""The tape: every operation of one run, with what it derives from; and the questions that are read from it."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch

from gradsmith.lab import Arguments, Lab, Settings, resolve
from gradsmith.lab.explore.questions import (
    blamed,
    clamps_something,
    compared,
    cuts,
    leaves_the_graph,
    looked_at,
    steps,
    uneven,
)
from gradsmith.lab.explore.sides import sides
from gradsmith.lab.explore.tape import NoEnd, OperationTape, stopped_after
from gradsmith.lab.once import known, once
from gradsmith.lab.run import forward, recorded
from gradsmith.source.knowledge import CLAMPS


def randn(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)


def tape_of(function, *inputs, **options) -> OperationTape:
    target = resolve(function)
    return recorded(target, Arguments.of(inputs, names=target.names), 0, **options)


class Hinge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, margin):
        y = (margin - x).clamp(min=0)
        ctx.save_for_backward(y, margin)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, _ = ctx.saved_tensors
        gated = torch.where(y > 0, grad_output, torch.zeros_like(grad_output))
        return -gated, gated


def test_what_is_written_down_of_an_operation():
    tape = tape_of(Hinge, randn(2, 3), randn(2, 3))
    (clamp,) = tape.calls({"clamp"})
    seen = clamp.args[0]
    assert (seen.shape, seen.dtype, clamp.kwargs) == ((2, 3), torch.float64, {"min": 0})
    assert seen.origins == {0, 1} and clamp.results[0].origins == {0, 1}
    assert torch.equal(clamp.results[0].values, seen.values.clamp(min=0))  # which side was taken
    assert clamp.line == Hinge.forward.__code__.co_firstlineno + 2
    assert [(op.name, op.line) for op in tape.aten()][:2] == [("sub", clamp.line), ("clamp", clamp.line)]


def test_of_what_is_too_large_to_be_kept_the_extent_is():
    tape = OperationTape()
    tape._room = 5
    with tape:
        torch.arange(6.0).gt(2)
        torch.arange(5.0).gt(2)
    large, small = (op.args[0] for op in tape.calls({"gt"}))
    assert large.values is None and large.extent == (0.0, 5.0)
    assert small.values is not None and small.extent is None


def test_backward_is_on_the_tape_with_what_it_saved_from_the_inputs():
    tape = tape_of(Hinge, randn(2, 3), randn(2, 3), backward=True)
    (where,) = tape.aten({"where"}, phase="backward")
    (compare,) = tape.aten({"gt"}, phase="backward")
    assert compare.args[0].origins == {0, 1}  # y was saved as an output, and comes back as another tensor
    assert where.args[0].memory == compare.results[0].memory
    assert compare.line == where.line == Hinge.backward.__code__.co_firstlineno + 3
    assert {op.line for op in tape.aten({"clone"}, phase="backward")} == {None}  # of the grad_output, by gradsmith


def test_what_is_written_into_a_buffer_derives_from_what_is_written():
    def scattered(x, y):
        out = torch.empty(4, 2, dtype=x.dtype)
        out[:2] = x
        out[2:].copy_(y)
        return out * 2

    tape = tape_of(scattered, torch.ones(2, 2), torch.ones(2, 2))
    (product,) = tape.calls({"mul"})
    assert product.origins == {0, 1}


def test_a_freed_tensor_gives_its_address_to_no_other():
    def loop(x):
        for _ in range(50):
            torch.zeros(100, 100) + 1  # freed at once: the allocator hands the same memory out again
        gc.collect()
        return torch.zeros(100, 100) * x

    tape = tape_of(loop, torch.ones(1))
    sums = [op.results[0].memory for op in tape.calls({"add"})]
    assert len(set(sums)) == 50
    assert not any(op.origins for op in tape.calls({"add"}))


def test_looked_at_is_what_forward_asks_anything_and_not_what_it_keeps():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kept, shaped):
            ctx.save_for_backward(kept)
            return x * shaped.shape[0]

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.saved_tensors[0], None, None

    assert looked_at(tape_of(Keeps, randn(2), randn(2), randn(2))) == {0, 2}


def test_what_ran_before_an_exception_counts_and_the_failing_call_is_blamed():
    def fails(x, w, unused):
        return (x * 2) @ w

    target = resolve(fails)
    tape = recorded(target, Arguments.of((randn(2, 3), randn(2, 3), randn(1)), names=target.names), 0)
    assert looked_at(tape) == {0, 1}
    assert blamed(tape) == {0, 1}
    assert tape.failed is not None


def test_indices_are_compared_and_accumulated_by():
    def pooled(x, index, labels):
        out = x.new_zeros(4).index_add(0, index.reshape(-1), x)
        return out.sum() + (labels.clone() != -100).sum()

    inputs = (randn(3), torch.tensor([[2, 0, 1]]), torch.tensor([1, 2]))
    target = resolve(pooled)
    arguments = Arguments.of(inputs, names=target.names)
    asked = compared(recorded(target, arguments, 0), arguments.leaves)
    assert asked.accumulated == {1} and asked.numbers == {2: [-100]}


@pytest.mark.parametrize(
    ("function", "size", "is_cut", "is_uneven"),
    [
        (lambda x: x * 2, 3, False, False),
        (lambda x: x.chunk(2)[0], 4, True, False),
        (lambda x: x.chunk(2)[0], 5, True, True),
        (lambda x: x[: len(x) // 2].sum() + x[len(x) // 2 :].sum(), 4, True, False),
        (lambda x: x[: len(x) // 2].sum() + x[len(x) // 2 :].sum(), 5, True, True),
    ],
)
def test_parts_of_different_sizes(function, size, is_cut, is_uneven):
    tape = tape_of(function, randn(size))
    assert (cuts(tape), uneven(tape)) == (is_cut, is_uneven)


def test_steps_on_the_way_of_an_input():
    tape = tape_of(lambda x, y: (x * 2).round() + y.exp() + torch.ones_like(x).sign(), randn(2), randn(2))
    assert steps(tape, 0) and not steps(tape, 1)
    tape = tape_of(lambda x: torch.ones_like(x).sign() * x, randn(2))
    assert not steps(tape, 0)  # what only has its shape does not derive from it
    assert not steps(tape_of(lambda x: torch.where(x > 0, 1.0, -1.0) * x, randn(2)), 0)  # x * (x > 0) has a slope


def test_sides_are_seen_below_the_calls_too():
    @torch.jit.script
    def scripted(x: torch.Tensor) -> torch.Tensor:
        return (2 * x + 1).clamp(max=5.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = resolve(lambda x: scripted(x))
        arguments = Arguments.of((3 * torch.ones(5, dtype=torch.float64, requires_grad=True),), names=["x"])
        found = list(sides(recorded(target, arguments, 0)))
    assert ("clamp", "above") in [(side.name, side.side) for side in found]


def test_clamps_hand_their_tensors_through():
    tape = OperationTape(through=CLAMPS)
    target = resolve(lambda x: x.clamp(-1, 1).atanh())
    run = forward(target, Arguments.of((torch.tensor([0.5, 3.0]),)), tape=tape)
    assert run.outputs[0].isnan().tolist() == [False, True]
    assert clamps_something(tape)


def test_a_stop_counts_calls():
    def without_end():
        while True:
            torch.ones(1).add(1)

    with pytest.raises(NoEnd), stopped_after(10) as tape:
        without_end()
    assert tape.operations == []


def test_what_leaves_the_graph():
    def cut(x):
        with torch.no_grad():
            size = x.max().item()
        return x / size + x.detach() + x.data

    assert leaves_the_graph(tape_of(cut, randn(2))) == ["no_grad", "item", "detach", ".data"]
    assert leaves_the_graph(tape_of(torch.tanh, randn(2))) == []


def test_the_tape_of_a_lab_is_recorded_once():
    calls = []

    def counted(x):
        calls.append(1)
        return x.clamp(max=3.0)

    target = resolve(counted)
    lab = Lab(target, Arguments.of((randn(3),), names=target.names), Settings())
    before = lab.precise and len(calls)
    assert looked_at(lab.tape) == {0} and not cuts(lab.tape) and list(sides(lab.tape))
    assert len(calls) == before + 1


def test_a_question_marked_once_is_worked_out_once_per_lab():
    asked = []

    @once
    def question(lab, number):
        asked.append(number)
        if len(asked) == 1:
            raise ValueError("asked again")
        return number * 2

    target = resolve(torch.tanh)
    one, other = (Lab(target, Arguments.of((randn(2),)), Settings()) for _ in range(2))
    with pytest.raises(ValueError, match="asked again"):
        question(one, 3)
    assert [question(one, 3), question(one, 3), question(one, 4), question(other, 3)] == [6, 6, 8, 6]
    assert asked == [3, 3, 4, 3] and known(one, question) == [6, 8]
