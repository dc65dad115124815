"""Other options than the example's: which are tried, under which kind, and that nothing of the user's changes by it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Literal

import pytest
import torch
from torch import nn

import gradsmith as gs
from gradsmith.lab.explore.defaults import as_written, names_of, with_defaults
from gradsmith.lab.explore.moves.options import (
    AsNumber,
    AsTensor,
    LeaveOut,
    TrainMode,
    changes_only_gradients,
    moves,
)
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import Settings
from gradsmith.lab.run import forward
from gradsmith.lab.subject.binding import bound
from gradsmith.lab.subject.target import resolve


def lab_of(subject, *args, **kwargs) -> Lab:
    target, arguments = bound(resolve(subject), args, kwargs)
    return Lab(target, arguments, Settings())


def tried(subject, *args, **kwargs):
    lab = lab_of(subject, *args, **kwargs)
    return list(moves(lab, with_defaults(lab.target, lab.arguments)))


def told(subject, *args, **kwargs):
    """kind -> sentences, in order."""
    found: dict[str, list[str]] = {}
    for move in tried(subject, *args, **kwargs):
        found.setdefault(move.kind, []).append(move.words())
    return found


def x(*shape: int, grad: bool = True) -> torch.Tensor:
    drawn = torch.rand(shape or (3, 4), dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    return drawn.requires_grad_(grad)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight=None, mode: Literal["plain", "double"] = "plain", transpose=False, k=3, beta=0.5):
        ctx.options = mode, transpose, k, beta
        y = x * 2 if mode == "double" else x
        if k > 5:
            y = y * k
        y = y * beta
        return y.t() if transpose else y.clone()

    @staticmethod
    def backward(ctx, g):
        mode, transpose, k, beta = ctx.options
        g = g.t() if transpose else g
        return (g * beta * (2 if mode == "double" else 1) * (k if k > 5 else 1)), None, None, None, None, None


class OneGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=2.0):
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g * 2.0


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, passes: bool):
        ctx.passes = passes
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return (g * 3 if ctx.passes else g * 0), None


def plain(x, *, mode="mean", dim=-1, window=(3, 3), bias: torch.Tensor | None = None):
    y = x.cumsum(dim)
    if mode == "mean":
        y = y.mean()
    return y * sum(window)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4, dtype=torch.float64)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, gain: float = 2.0):
        return self.drop(self.linear(x)) * gain


def outputs(lab, arguments):
    return forward(lab.target, arguments, seed=0).outputs


# --- defaults -------------------------------------------------------------------------------------------------------


def test_defaults_of_a_function_are_given_behind_its_arguments():
    lab = lab_of(Scaled, x())
    filled = with_defaults(lab.target, lab.arguments)
    assert filled.flat[1:] == [None, "plain", False, 3, 0.5]
    assert filled.flat[0] is lab.arguments.flat[0]
    assert [leaf.name for leaf in filled.differentiable] == ["x"]
    assert torch.equal(outputs(lab, filled)[0], outputs(lab, lab.arguments)[0])


def test_keyword_only_defaults_of_a_callable_are_given_as_keywords():
    lab = lab_of(plain, x(), dim=0)
    filled = with_defaults(lab.target, lab.arguments)
    assert filled.names(lab.target.names) == ["x", "dim", "mode", "window[0]", "window[1]", "bias"]
    assert filled.flat[1:] == [0, "mean", 3, 3, None]
    assert torch.equal(outputs(lab, filled)[0], outputs(lab, lab.arguments)[0])


def test_defaults_of_a_custom_op_are_given_too():
    with torch.library._scoped_library("gradsmith_test_options", "FRAGMENT"):

        @torch.library.custom_op("gradsmith_test_options::scaled", mutates_args=())
        def scaled(x: torch.Tensor, power: int = 2, *, mode: str = "a") -> torch.Tensor:
            return x**power if mode == "a" else x * power

        def setup(ctx, inputs, keyword_only_inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.power, ctx.mode = inputs[1], keyword_only_inputs["mode"]

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (g * ctx.power if ctx.mode == "b" else g * ctx.power * x ** (ctx.power - 1)), None

        scaled.register_autograd(backward, setup_context=setup)
        lab = lab_of(scaled, x())
        filled = with_defaults(lab.target, lab.arguments)
        assert filled.flat[1:] == [2, "a"]
        named = [m.words() for m in moves(lab, filled) if m.kind == "named option"]
        assert named == ["with `mode='b'`"]


def test_a_function_that_cannot_be_given_its_defaults_is_left_as_it_is():
    lab = lab_of(OneGradient, x())
    assert with_defaults(lab.target, lab.arguments) is lab.arguments


@pytest.mark.parametrize(
    ("subject", "words", "expected"),
    [
        (Scaled, "with `mode='double'`", ["mode='double'"]),
        (plain, "with `mode='sum'`", ["mode='sum'"]),
        (plain, "with `window[0]=4`", ["window[0]=4", "window[1]=3"]),
        (Layer(), "after `eval()`", ["train()=False"]),
    ],
)
def test_what_nobody_changed_is_left_out_again(subject, words, expected):
    lab = lab_of(subject, x())
    filled = with_defaults(lab.target, lab.arguments)
    move = next(m for m in moves(lab, filled) if m.words() == words)
    changed = move.applied(filled, 0)
    written = as_written(lab.target, lab.arguments, filled, changed)
    names = written.names(names_of(lab.target))
    told = [f"{n}={v!r}" for n, v in zip(names, written.flat) if not isinstance(v, (torch.Tensor, type(None)))]
    assert told == expected
    assert [leaf.name for leaf in written.differentiable] == [leaf.name for leaf in lab.arguments.differentiable]
    assert torch.equal(outputs(lab, written)[0], outputs(lab, changed)[0])
    assert as_written(lab.target, lab.arguments, filled, filled).spec == lab.arguments.spec


def test_what_requires_grad_stays_what_it_was():
    lab = lab_of(Scaled, x())
    filled = with_defaults(lab.target, lab.arguments.only(set()))
    assert filled.differentiable == []


# --- moves ----------------------------------------------------------------------------------------------------------


def test_named_options_come_first_and_say_themselves():
    found = tried(Scaled, x())
    assert [m.words() for m in found if m.kind == "named option"] == [
        "with `mode='double'`",
        "with `transpose=True`",
        "with `k=6`",
    ]
    assert found[0].kind == "named option"


def test_both_sides_of_a_bound_and_of_a_test_are_tried():
    def bounded(x, k, depth, word):
        y = x * 2 if k > 3 else x
        return y * 2 if depth and not word else y

    for k, others in ((3, {"with `k=4`"}), (2, {"with `k=4`"}), (9, {"with `k=2`", "with `k=3`"})):
        found = set(told(bounded, x(), k, 2, "a")["named option"])
        assert found == {"with `depth=0`", "with `word=''`", *others}

    def tested(x, depth):
        return x * 2 if depth else x

    assert told(tested, x(), 2)["named option"] == ["with `depth=0`"]
    assert told(tested, x(), 0)["named option"] == ["with `depth=1`"]
    assert told(tested, x(), 0.0)["named option"] == ["with `depth=1.0`"]


def test_numbers_keep_sign_and_magnitude_before_others_are_invented():
    found = told(Scaled, x())
    assert found["values"] == ["with `beta=0.35`", "with `beta=0.65`"]
    assert "with `k=4`" in found["invented option"]
    assert "with `beta=1.0`" in found["invented option"]


def test_numbers_of_the_unit_interval_stay_in_it():
    values = [m.value for m in tried(Scaled, x(), None, "plain", False, 3, 0.9) if m.kind == "values"]
    assert values == pytest.approx([0.63, 0.93])


def test_a_dimension_that_torch_is_given_is_named_and_other_integers_are_invented():
    found = told(plain, x())
    assert "with `dim=0`" in found["named option"]
    assert "with `dim=1`" in found["named option"]
    assert "with `dim=0`" not in found["invented option"]
    assert "with `window[1]=4`" in found["invented option"]


def test_entries_of_a_dict_are_options_like_others():
    def configured(x, config):
        y = x.sum(config["dims"])
        return y * 2 if config["mode"] == "double" else y

    found = told(configured, x(2, 3, 4), {"mode": "single", "dims": (0, 1), "fast": False})
    assert "with `config['mode']='double'`" in found["named option"]
    assert "with `config['fast']=True`" in found["named option"]
    assert "with `config['dims'][0]=1`" not in found["named option"]


def test_dimensions_in_a_tuple_are_varied_one_at_a_time():
    def summed(x, dims=(0, 1)):
        return x.sum(dims)

    assert {"with `dims[0]=2`", "with `dims[1]=2`"} <= set(told(summed, x(2, 3, 4))["named option"])


def test_a_reduction_is_tried_in_all_its_ways():
    assert {"with `mode='sum'`", "with `mode='none'`"} <= set(told(plain, x())["named option"])


def test_none_is_tried_only_where_it_is_taken():
    weight = x(4, grad=False)
    found = [m for m in tried(Scaled, x(), weight) if isinstance(m, LeaveOut)]
    assert [m.words() for m in found] == ["with `weight=None`"]

    def needs_it(x, weight):
        return x[None] * weight

    assert not any(isinstance(m, LeaveOut) for m in tried(needs_it, x(), weight))


def test_the_only_input_with_a_gradient_is_never_left_out():
    def optional(x=None):
        return x * 2 if x is not None else torch.zeros(1)

    assert not any(isinstance(m, LeaveOut) for m in tried(optional, x()))


def test_requires_grad_is_turned_on_for_what_forward_looks_at():
    def gated(x, gate, unused, index):
        return x * gate + index

    found = [
        m for m in tried(gated, x(), x(4, grad=False), x(2, grad=False), torch.arange(4)) if m.kind == "requires grad"
    ]
    assert [m.words() for m in found] == ["with 'gate' requiring grad"]
    lab = lab_of(gated, x(), x(4, grad=False), x(2, grad=False), torch.arange(4))
    changed = found[0].applied(lab.arguments, 0)
    assert [leaf.name for leaf in changed.differentiable] == ["x", "gate"]
    assert not lab.arguments.flat[1].requires_grad


def test_a_number_becomes_a_tensor_and_back():
    def scaled(x, scale, other):
        return x * scale + other

    lab = lab_of(scaled, x(), 2.0, torch.tensor(3.0, dtype=torch.float64, requires_grad=True))
    found = tried(scaled, *lab.arguments.flat)
    (made,) = [m.applied(lab.arguments, 0) for m in found if isinstance(m, AsTensor)]
    assert [leaf.name for leaf in made.leaves] == ["x", "scale", "other"]
    assert made.flat[1].dtype == torch.float64
    (number,) = [m.applied(lab.arguments, 0) for m in found if isinstance(m, AsNumber)]
    assert number.flat[2] == 3.0
    assert torch.equal(outputs(lab, made)[0], outputs(lab, number)[0])


def test_a_module_is_tried_in_the_other_mode_and_put_back():
    layer = Layer()
    layer.drop.eval()
    lab = lab_of(layer, x())
    filled = with_defaults(lab.target, lab.arguments)
    assert torch.equal(outputs(lab, filled)[0], outputs(lab, lab.arguments)[0])
    (move,) = [m for m in moves(lab, filled) if isinstance(m, TrainMode)]
    assert move.words() == "after `eval()`"
    evaluated = move.applied(filled, 0)
    outputs(lab, evaluated)
    assert (layer.training, layer.linear.training, layer.drop.training) == (True, True, False)
    trained = TrainMode(move.argument, move.position, True).applied(evaluated, 0)
    assert torch.equal(outputs(lab, trained)[0], outputs(lab, filled)[0])


def test_dropout_is_off_after_eval_only():
    layer = Layer()
    lab = lab_of(layer, x())
    filled = with_defaults(lab.target, lab.arguments)
    (move,) = [m for m in moves(lab, filled) if isinstance(m, TrainMode)]
    assert bool((outputs(lab, filled)[0] == 0).any())
    assert not bool((outputs(lab, move.applied(filled, 0))[0] == 0).any())


def test_training_writes_into_no_buffer_of_the_user():
    norm = nn.BatchNorm1d(4, dtype=torch.float64).eval()
    lab = lab_of(norm, x())
    filled = with_defaults(lab.target, lab.arguments)
    (move,) = [m for m in moves(lab, filled) if isinstance(m, TrainMode)]
    run = forward(lab.target, move.applied(filled, 0), seed=0)
    run.gradients(run.ones())
    assert torch.allclose(run.outputs[0].mean(0), torch.zeros(4, dtype=torch.float64))
    assert norm.num_batches_tracked == 0
    assert torch.equal(norm.running_mean, torch.zeros(4, dtype=torch.float64))


def test_a_module_among_the_arguments_is_copied_before_its_mode_changes():
    norm = nn.BatchNorm1d(4, dtype=torch.float64)

    def normed(x, layer, weight):
        return layer(x) + weight.sum()

    lab = lab_of(normed, x(), norm.eval(), norm.weight)
    (move,) = [m for m in tried(normed, x(), norm, norm.weight) if isinstance(m, TrainMode)]
    changed = move.applied(lab.arguments, 0)
    outputs(lab, changed)
    assert changed.flat[1].training
    assert changed.flat[1].weight is norm.weight
    assert not norm.training
    assert norm.num_batches_tracked == 0


def test_a_move_that_changes_nothing_says_so():
    lab = lab_of(Scaled, x())
    filled = with_defaults(lab.target, lab.arguments)
    for move in moves(lab, filled):
        changed = move.applied(filled, 0)
        assert changed is not None, move
        assert isinstance(move, (AsTensor, AsNumber)) or move.applied(changed, 0) is None, move


def test_moves_can_be_stored_and_built_again():
    for move in tried(Scaled, x(), x(4, grad=False)):
        assert type(move)(**json.loads(json.dumps(asdict(move)))) == move


@pytest.mark.parametrize(("subject", "expected"), [(Hidden, True), (Scaled, False)])
def test_an_option_that_changes_only_gradients(subject, expected):
    lab = lab_of(subject, x(), True) if subject is Hidden else lab_of(subject, x())
    filled = with_defaults(lab.target, lab.arguments)
    flag = next(m for m in moves(lab, filled) if isinstance(getattr(m, "value", None), bool))
    assert changes_only_gradients(lab, filled, flag.applied(filled, 0)) is expected


def test_names_of_options_play_no_part():
    def detach(x, stop_gradient=False, inplace=True):
        return x * 2

    assert told(detach, x())["named option"] == ["with `stop_gradient=True`", "with `inplace=False`"]


@pytest.mark.parametrize("wrong", [True, False])
def test_the_gradient_of_a_bias_that_the_example_leaves_out_is_judged(wrong: bool) -> None:
    class Biased(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
            ctx.save_for_backward(x, weight)
            return torch.nn.functional.linear(x, weight, bias)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:
            x, weight = ctx.saved_tensors
            bias = (g.mean(0) if wrong else g.sum(0)) if ctx.needs_input_grad[2] else None
            return g @ weight, g.mT @ x, bias

    shapes = ((4, 3), (5, 3))
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    report = gs.check(Biased, *given, None, select=("wrong-gradient", "option-dependent"))
    assert [f.rule for f in report.errors] == (["option-dependent"] if wrong else [])
    if wrong:
        assert "that requires grad for 'bias'" in report.errors[0].message


def test_none_that_is_compared_with_a_size_stands_for_an_integer() -> None:
    class TopSum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=None, scale=None):
            ctx.k = k
            return x.sum(-1) if k is None or k >= x.shape[-1] else x[..., :k].sum(-1)

        @staticmethod
        def backward(ctx, g):
            return g, None, None

    invented = told(TopSum, x(3, 4), None, None)["invented option"]
    assert "with `k=1`" in invented and not any("scale" in words for words in invented)
