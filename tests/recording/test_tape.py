"""What a tape notes, and what it says after checking."""

from __future__ import annotations

import functions_that_run as ops
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.scaling import scaled
from gradsmith.recording.call import KEPT_CALLS
from gradsmith.recording.tape import KEPT_SIGNATURES


def names(tape: gs.recording.Tape) -> list[str]:  # type: ignore[name-defined]
    return [call.name for call in tape.calls]


def test_apply_taken_before_the_tape_existed_is_heard_inside_a_module():
    layer = ops.Layer()
    with gs.record() as tape:
        for _ in range(5):
            layer(torch.randn(4, 3))
    assert {call.name: call.count for call in tape.calls} == {"Swish": 5, "Scale": 5}
    assert all(list(call.lines) == ["functions_that_run.py:72"] for call in tape.calls)


def test_the_wrong_one_is_refuted_and_the_right_one_verified_on_recorded_inputs():
    with gs.record() as tape:
        ops.Layer()(torch.randn(4, 3))
    report = tape.check()
    verdicts = {s.name: (s.verdict, s.inputs_from) for s in report.subjects}
    assert verdicts == {"Swish": ("refuted", "recorded"), "Scale": ("verified", "recorded")}
    assert [f.argument for f in report.errors] == ["beta"]
    assert report.subjects[0].measured["calls"] == 1
    assert report.notes[0].startswith("2 Functions ran: Swish once (functions_that_run.py:")


def test_classes_made_while_the_tape_runs_are_heard():
    with gs.record() as tape:

        class Late(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x + 1

            @staticmethod
            def backward(ctx, grad_output):
                return grad_output

        Late.apply(torch.ones(2, requires_grad=True))
    assert names(tape) == ["Late"]


def test_a_subclass_that_calls_its_parents_forward_is_one_call():
    with gs.record() as tape:
        ops.Child.apply(torch.ones(2, 3, requires_grad=True))
        ops.Heir.apply(torch.ones(2, 3, requires_grad=True), torch.tensor(2.0))
    assert names(tape) == ["Child", "Heir"]
    assert len(tape.calls[0].examples[0]) == 1


def test_first_calls_of_a_signature_are_kept_and_the_rest_counted():
    with gs.record() as tape:
        for n in (1, 2):
            for _ in range(7):
                ops.swish(torch.randn(n, requires_grad=True), torch.tensor(1.0))
    assert [(call.count, len(call.examples)) for call in tape.calls] == [(7, KEPT_CALLS), (7, KEPT_CALLS)]


def test_a_signature_that_comes_late_is_kept_and_true_is_not_one():
    with gs.record() as tape:
        for _ in range(200):
            ops.Parent.apply(torch.ones(2, requires_grad=True), 1)
        ops.Parent.apply(torch.ones(2, requires_grad=True), True)
        ops.Parent.apply(torch.ones(3, requires_grad=True), 1)
    assert [(call.count, len(call.examples)) for call in tape.calls] == [(200, KEPT_CALLS), (1, 1), (1, 1)]


def test_signatures_that_take_turns_are_counted_each_for_itself():
    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, dim):
            return x.sum()

        @staticmethod
        def backward(ctx, grad_output):
            return None, None

    different = [
        (torch.ones(2, 3, requires_grad=True), -1),
        (torch.ones(2, 3, requires_grad=True), -2),  # Python hashes -1 and -2 alike
        (torch.ones(2, 3), -2),
        (torch.ones(2, 3, dtype=torch.float64), -2),
        (torch.ones(3, 2).t(), -2),
        (torch.ones(2, 3).to_sparse(), -2),
        (torch.ones(2, 3), None),
    ]
    with gs.record() as tape:
        for turn in range(5):
            for args in different[:: 1 if turn % 2 else -1]:
                Total.apply(*args)
    assert [call.count for call in tape.calls] == [5] * len(different)


def test_two_classes_with_one_forward_are_told_apart():
    class First(ops.Swish):
        pass

    class Second(ops.Swish):
        pass

    with gs.record() as tape:
        for _ in range(6):
            for cls in (First, Second, Second):
                cls.apply(torch.ones(2, requires_grad=True), torch.tensor(1.0))
    assert {call.name.rpartition(".")[2]: call.count for call in tape.calls} == {"First": 6, "Second": 12}


def test_arguments_that_differ_at_every_call_do_not_fill_the_memory():
    with gs.record() as tape:
        for step in range(100):
            ops.Parent.apply(torch.ones(2), step)
    assert len(tape.calls) == KEPT_SIGNATURES + 1
    assert tape.count(ops.Parent) == 100


def test_recorded_values_survive_later_writes():
    x = torch.ones(3, requires_grad=True)
    with gs.record() as tape:
        ops.swish(x, torch.tensor(1.0))
    with torch.no_grad():
        x.fill_(7.0)
    assert tape.calls[0].examples[0][0].tolist() == [1.0, 1.0, 1.0]


def test_classes_are_as_they_were_after_the_block_and_after_an_error():
    before = {cls: dict(vars(cls)) for cls in (ops.Swish, ops.Scale, ops.Child)}
    with pytest.raises(ZeroDivisionError), gs.record():
        raise ZeroDivisionError
    assert all(dict(vars(cls)) == kept for cls, kept in before.items())
    with gs.record() as tape:
        pass
    ops.swish(torch.ones(2), torch.tensor(1.0))
    assert tape.calls == []


def test_a_function_that_never_needed_a_gradient_is_not_verified():
    with gs.record() as tape:
        ops.swish(torch.ones(2, 3), torch.tensor(1.0))
    subject = tape.check().subjects[0]
    assert subject.verdict == "unverified"
    assert "never on an input that requires grad" in subject.reason


def test_calls_inside_transforms_are_counted_and_said_not_to_be_kept():
    with gs.record() as tape:
        torch.func.grad(lambda x: ops.Scale.apply(x, None, 2.0).sum())(torch.ones(3))
    assert tape.count(ops.Scale) >= 1
    assert tape.check().subjects[0].verdict == "unverified"


def test_compiled_code_runs_on_while_the_tape_listens():
    compiled = torch.compile(lambda x: ops.Swish.apply(x, x.sum()), backend="eager", fullgraph=True)
    with gs.record():
        assert compiled(torch.ones(3)).shape == (3,)


def test_large_inputs_are_scaled_down_and_the_report_says_so():
    with gs.record() as tape:
        ops.Parent.apply(torch.randn(3000, 2000, requires_grad=True), 3.0)
    report = tape.check()
    assert report.ok
    assert "scaled down for the check (sizes 2000 to 256, 3000 to 248)" in report.notes[1]


def test_scaling_keeps_equal_sizes_equal_and_different_ones_different():
    weight, x, bias = torch.randn(512, 1000), torch.randn(4096, 1000), torch.randn(512)
    (w, y, b), how = scaled((weight, x, bias))
    assert w.shape[1] == y.shape[1]
    assert w.shape[0] == b.shape[0]
    assert len({w.shape[0], w.shape[1], y.shape[0]}) == 3
    assert how.startswith("sizes 512 to")


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index, rows):
        assert table.shape[0] == rows
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        return grad_output.new_zeros(ctx.shape).index_add(0, index, grad_output), None, None


def test_large_inputs_with_indices_and_a_number_that_states_a_size_are_scaled_down_too():
    with gs.record() as tape:
        Rows.apply(torch.randn(5000, 40, requires_grad=True), torch.randint(5000, (900,)), 5000)
    report = tape.check()
    assert report.ok
    assert any("scaled down for the check (sizes 5000 to" in note for note in report.notes)
