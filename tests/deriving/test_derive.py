"""What a user of gs.derive sees: source that is right at every broadcast, or a sentence with line and remedy."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.deriving.deriving import derived, executed
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.trying import compared
from gradsmith.findings import GradsmithError

OUTSIDE = torch.randn(4, dtype=torch.float64, requires_grad=True)


def r(*shape: int, grad: bool = True) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(shape, dtype=torch.float64, requires_grad=grad)


def swish(x: Any, beta: Any) -> Any:
    return x * torch.sigmoid(beta * x)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    attn = torch.softmax(scores, dim=-1)
    return attn @ v


def test_gs_derive_returns_a_function_that_runs_and_is_right() -> None:
    source = gs.derive(swish, r(3, 4), r())
    names = executed(source)
    x, beta = r(3, 4), torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    out = names["swish"](x, beta)
    want = torch.autograd.grad(swish(x, beta).sum(), (x, beta))
    assert torch.allclose(out, swish(x, beta))
    assert all(torch.allclose(a, b) for a, b in zip(torch.autograd.grad(out.sum(), (x, beta)), want))


def test_the_source_speaks_in_the_users_names() -> None:
    source = derived(attention, (r(2, 3, 4), r(2, 3, 4), r(2, 3, 4)), {}).source
    assert "attn = torch.softmax(scores, -1)" in source
    assert "grad_q = grad_product_q @ k" in source
    assert "math.sqrt(q.shape[-1])" in source  # the size of the example is not baked in


def test_what_backward_assumes_is_tested_in_forward() -> None:
    made = derived(layer_norm, (r(3, 4), r(4), r(4)), {})
    with pytest.raises(ValueError, match=r"layer_norm: needs x\.shape"):
        made.wrapper(r(3, 4), r(1), r(4))


@settings(max_examples=25, deadline=None)
@given(a=st.lists(st.sampled_from([1, 2, 3]), max_size=3), b=st.lists(st.sampled_from([1, 2, 3]), max_size=3))
def test_every_broadcast_is_summed_exactly_whatever_the_example_showed(a: list[int], b: list[int]) -> None:
    made = derived(swish, (r(3, 4), r(3, 4)), {})
    example = {"x": r(*a).detach(), "beta": r(*b).detach()}
    assert compared(swish, made.wrapper, example, {"x", "beta"}) in ("same", "not judged")


def test_an_option_that_was_fixed_is_tested() -> None:
    def loss(x: Any, y: Any, reduction: str = "mean") -> Any:
        gap = (x - y) ** 2
        return gap.mean() if reduction == "mean" else gap.sum()

    made = derived(loss, (r(3), r(3, grad=False)), {})
    with pytest.raises(ValueError, match="derived for reduction='mean'"):
        made.wrapper(r(3), r(3, grad=False), "sum")


def test_two_draws_are_two_values() -> None:
    def noisy(x: Any) -> Any:
        return x * torch.rand_like(x) + torch.rand_like(x) * x**2

    made = derived(noisy, (r(3, 4),), {})
    assert compared(noisy, made.wrapper, {"x": r(3, 4).detach()}, {"x"}) == "same"


def test_in_place_work_on_a_local_is_understood() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y += x
        y.mul_(3)
        return y * x

    made = derived(f, (r(3),), {})
    assert compared(f, made.wrapper, {"x": r(3).detach()}, {"x"}) == "same"


def test_a_function_with_a_wrong_backward_is_derived_from_its_forward() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad_output * x

    assert "3 * grad_output * x**2" in gs.derive(Cube, r(3, 4))


def branch(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x * 3


def repeated(x: Any) -> Any:
    while x.norm() > 1:
        x = x / 2
    return x


def changes_input(x: Any) -> Any:
    x += 1
    return x * x


def item(x: Any) -> Any:
    return x * x.sum().item()


def data(x: Any) -> Any:
    return x.data * x


def numpy(x: Any) -> Any:
    return x * torch.from_numpy(x.detach().numpy())


def closure(x: Any) -> Any:
    return x * OUTSIDE


def dropped(x: Any) -> Any:
    return F.dropout(x, 0.5)


def drawn_in_place(x: Any) -> Any:
    return x * torch.empty_like(x).exponential_()


def drawn_alike(x: Any) -> Any:
    return x + torch.poisson(x.detach().abs())


def unknown(x: Any) -> Any:
    return torch.special.zeta(x, x).sum()


def complex_numbers(x: Any) -> Any:
    return torch.fft.fft(x).abs()


def long_loop(x: Any) -> Any:
    for i in range(9):
        x = torch.sin(x) if i % 2 else torch.cos(x)
    return x


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (branch, "a branch depends on the value of a tensor"),
        (repeated, "a loop ends when the value of a tensor says so"),
        (changes_input, "changes an input in place"),
        (item, "makes a Python number, and no gradient flows through it"),
        (data, "hides the value from autograd"),
        (numpy, "NumPy"),
        (closure, "a tensor from outside that requires grad"),
        (dropped, "draws random numbers"),
        (drawn_in_place, "draws random numbers"),
        (drawn_alike, "draws random numbers"),
        (unknown, "has no derivative rule"),
        (complex_numbers, "rule"),
        (long_loop, "has 9 turns"),
    ],
)
def test_what_cannot_be_derived_is_refused_with_line_and_reason(forward: Any, words: str) -> None:
    with pytest.raises(Refused) as caught:
        derived(forward, (r(4, 4),), {})
    assert words in str(caught.value)
    assert "line " in str(caught.value)


def test_a_lambda_is_asked_for_a_name() -> None:
    with pytest.raises(Refused, match="Write it as `def name"):
        derived(lambda x: x * torch.tanh(x), (r(3),), {})


def test_a_formula_becomes_a_function() -> None:
    from gradsmith.writing.formula import formula

    made = formula("swish", "x * sigmoid(beta * x)")
    assert made.names == ("x", "beta")
    assert "class Swish" in derived(made.function, made.arguments(), {}).source


def test_a_formula_without_a_tensor_is_refused() -> None:
    from gradsmith.writing.formula import formula

    with pytest.raises(GradsmithError, match="has no tensor"):
        formula("two", "sin(2.0)")


def test_assignments_to_indices_of_a_local_are_understood() -> None:
    def rotation(angle: Any) -> Any:
        matrix = torch.zeros(angle.shape[0], 2, 2, dtype=angle.dtype, device=angle.device)
        matrix[:, 0, 0] = torch.cos(angle)
        matrix[..., 0, 1] = -torch.sin(angle)
        matrix[:, 1] = torch.stack((torch.sin(angle), torch.cos(angle)), -1)
        return matrix

    made = derived(rotation, (r(3),), {})
    assert compared(rotation, made.wrapper, {"angle": r(5).detach()}, {"angle"}) == "same"


def test_a_list_as_index_is_not_two_indices() -> None:
    def swapped(x: Any) -> Any:
        return x[[1, 0]] * x

    made = derived(swapped, (r(2, 2),), {})
    assert compared(swapped, made.wrapper, {"x": r(2, 2).detach()}, {"x"}) == "same"


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_a_list_of_lists_as_index_is_what_torch_makes_of_it() -> None:
    def picked(x: Any) -> Any:
        return x[[[0, 2], [1, 1]]] ** 2

    made = derived(picked, (r(3, 3),), {})
    assert compared(picked, made.wrapper, {"x": r(3, 3).detach()}, {"x"}) == "same"


def test_a_product_inside_a_product_keeps_its_parentheses() -> None:
    def f(x: Any, a: Any, b: Any) -> Any:
        return x * (a @ b) + (x % 3) * torch.floor(a)

    made = derived(f, (r(3, 3), r(3, 3), r(3, 3)), {})
    assert compared(f, made.wrapper, {n: r(3, 3).detach() + i for i, n in enumerate("xab")}, {"x", "a", "b"}) == "same"


def test_a_function_called_f_does_not_take_the_name_of_the_functional_module() -> None:
    def f(table: Any, index: Any) -> Any:
        return F.softplus(table[index.view(-1)]).view(index.shape[0], index.shape[1], -1)

    made = derived(f, (r(5, 2), torch.randint(5, (3, 4))), {})
    assert "class FFunction(" in made.source
    example = {"table": r(6, 3).detach(), "index": torch.randint(6, (2, 4))}
    assert compared(f, made.wrapper, example, {"table"}) == "same"


def shared_memory(x: Any) -> Any:
    y = x * 2
    z = y[0]
    y.mul_(3)
    return y + z


def writes_into_views(x: Any) -> Any:
    y = x.clone()
    half = y[..., 2:]
    half.t()[0].add_(x[:, 1].sin())
    y[..., 0].mul_(x[:, 1]).sub_(1)
    y[:, 1] += half[:, 1]
    return y * y.detach().clone().fill_(2)


def writes_by_mask(x: Any) -> Any:
    y = x * x
    y[x < 0] = 0.5
    y[x > 0] = torch.exp(x[x > 0])
    return y


@pytest.mark.parametrize("forward", [shared_memory, writes_into_views, writes_by_mask])
def test_what_is_written_in_place_is_seen_by_every_view(forward: Any) -> None:
    made = derived(forward, (r(4, 4),), {})
    assert compared(forward, made.wrapper, {"x": r(4, 4)}, {"x"}) == "same"


def test_an_input_that_got_no_gradient_is_never_a_silent_constant() -> None:
    def squared(pred: Any, target: Any) -> Any:
        return ((pred - target) ** 2).mean()

    wrapper = derived(squared, (r(3, 4), r(3, 4, grad=False)), {}).wrapper
    with pytest.raises(ValueError, match="without a gradient for target"):
        wrapper(r(3, 4), r(3, 4))
    with torch.no_grad():
        wrapper(r(3, 4), r(3, 4))


def test_a_number_whose_other_values_have_another_backward_is_tested() -> None:
    def excess(x: Any, dim: int = -1, scale: float = 2.0) -> Any:
        total = torch.cumsum(x, dim)
        return total * scale - x.mean(dim, keepdim=True) * total.abs()

    made = derived(excess, (r(3, 4),), {})
    with pytest.raises(ValueError, match="derived for dim=-1"):
        made.wrapper(r(3, 4), 0)
    other = {"x": r(2, 3).detach(), "dim": -1, "scale": 0.3}  # a factor stays free
    assert compared(excess, made.wrapper, other, {"x"}) == "same"


def test_a_loop_may_end_with_any_line_and_start_with_a_part_of_an_input() -> None:
    def smoothed(x: Any, decay: float = 0.9) -> Any:
        mean = x[:, 0]
        square = x[:, 0] ** 2
        for i in range(1, x.shape[1]):
            mean = decay * mean + (1 - decay) * x[:, i]
            square = decay * square + (1 - decay) * x[:, i] ** 2
        return mean / (square + 1).sqrt()

    made = derived(smoothed, (r(3, 7),), {})
    assert "for t in reversed(range(" in made.source
    for size in (2, 5):
        assert compared(smoothed, made.wrapper, {"x": r(2, size).detach(), "decay": 0.4}, {"x"}) == "same"
    kept = made.function.apply(r(2, 7), 0.9)[1:]
    assert not any(t.requires_grad for t in kept)  # a view of an input would stay differentiable


def test_a_shape_may_be_changed_in_place() -> None:
    def grid(theta: Any) -> Any:
        base = torch.linspace(0, 1, 3, dtype=theta.dtype, device=theta.device).unsqueeze_(-1)
        return base * theta.sin().t_()[0]

    made = derived(grid, (r(4, 2),), {})
    assert compared(grid, made.wrapper, {"theta": r(5, 2).detach()}, {"theta"}) == "same"


def test_an_option_that_cannot_be_written_down_is_refused() -> None:
    def mapped(x: Any, mapping: Any) -> Any:
        return mapping(x) * x

    with pytest.raises(Refused, match="`mapping` is a function"):
        derived(mapped, (r(3), lambda x: x.sin()), {})


def test_a_second_order_goes_through_what_torch_differentiates_itself() -> None:
    def product(x: Any) -> Any:
        return x.prod(-1)

    wrapper = derived(product, (r(3, 4),), {}).wrapper
    seconds = []
    for fn in (product, wrapper):
        x = r(3, 4)
        (first,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), x)
        seconds.append(second)
    assert torch.allclose(*seconds)


def test_a_loop_over_unbind_stays_a_loop_and_computes_what_it_reads_once() -> None:
    def rnn(x: Any, h: Any, w: Any, u: Any) -> Any:
        for p in (x @ w).unbind(0):
            h = torch.tanh(p + h @ u)
        return h

    made = derived(rnn, (r(6, 2, 3), r(2, 4), r(3, 4), r(4, 4)), {})
    forward = made.source.split("def setup_context")[0]
    assert forward.index("x @ w") < forward.index("for t in range")
    example = {"x": r(3, 5, 2), "h": r(5, 4), "w": r(2, 4), "u": r(4, 4)}
    example = {name: value.detach() for name, value in example.items()}
    assert compared(rnn, made.wrapper, example, set(example)) == "same"


def softmax_by_hand(x: Any) -> Any:
    weights = torch.exp(x - x.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


def logsumexp_by_hand(x: Any) -> Any:
    top = x.max(dim=-1, keepdim=True).values
    return top.squeeze(-1) + torch.log(torch.exp(x - top).sum(-1))


def rms_norm_by_hand(x: Any) -> Any:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def huber_by_hand(x: Any) -> Any:
    return torch.where(x.abs() <= 1, 0.5 * x**2, x.abs() - 0.5)


@pytest.mark.parametrize("forward", [softmax_by_hand, logsumexp_by_hand, rms_norm_by_hand, huber_by_hand])
def test_known_formulas_are_recognised_and_stay_short(forward: Any) -> None:
    """The maximum that is taken away has no gradient of its own; each element of a `where` has one slope."""
    made = derived(forward, (r(4, 6),), {})
    backward = made.source.split("def backward")[1].split("\ndef ")[0]
    assert len(backward.strip().splitlines()) <= 6 and "==" not in backward and backward.count("where(") <= 1, backward
    ties = torch.tensor([[1.0, 1.0, -3.0], [0.5, 2.0, 2.0]], dtype=torch.float64)
    assert compared(forward, made.wrapper, {"x": ties}, {"x"}) == "same"


def test_no_line_is_too_long_and_no_gradient_is_written_twice() -> None:
    def mixture(logits: Any, mean: Any, log_sigma: Any, target: Any) -> Any:
        z = (target[:, None] - mean) * torch.exp(-log_sigma)
        log_p = -0.5 * z * z - log_sigma - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(F.log_softmax(logits, dim=-1) + log_p, dim=-1).mean()

    source = derived(mixture, (r(5, 3), r(5, 3), r(5, 3), r(5, grad=False)), {}).source
    code = [line for line in source.splitlines() if '"""' not in line]
    assert max(map(len, code)) <= 120, source
    assert len(re.findall(r"\bgrad_output\b", source)) == 2, source  # the parameter, and where it is used


def area_of_overlap(a: Any, b: Any) -> Any:
    side = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0)
    return side.prod(1)


def filtered(x: Any, taps: Any) -> Any:
    return x.unfold(-1, taps.numel(), 1) @ taps.flip(0)


@pytest.mark.parametrize(("forward", "shapes"), [(area_of_overlap, [(5, 4), (5, 4)]), (filtered, [(2, 9), (3,)])])
def test_what_torch_itself_pulls_back_may_stand_in_the_middle(forward: Any, shapes: list[tuple[int, ...]]) -> None:
    """`prod` and `x.unfold` have no formula of their own: torch.autograd.functional.vjp gives a tuple, its part is used."""
    made = derived(forward, tuple(r(*shape) for shape in shapes), {})
    assert compared(forward, made.wrapper, made.example, set(made.wanted)) == "same"
    assert "vjp(" in made.source


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "var"])
def test_a_reduction_over_everything_may_keep_its_dimensions(reduce: str) -> None:
    def centred(x: Any) -> Any:
        return x * getattr(x, reduce)(dim=None, keepdim=True)

    made = derived(centred, (r(3, 4),), {})
    assert compared(centred, made.wrapper, {"x": r(2, 5).detach()}, {"x"}) == "same"
