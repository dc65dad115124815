"""What readers of derived source found: misleading names, tests that nothing needs, numbers that would cancel, lines of bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import gradsmith as gs
from gradsmith.deriving.deriving import derived
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.wrapping import in_terms


def r(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()


def backward_of(fn: Any, *args: Any) -> str:
    return str(derived(fn, args, {}).source.split("def backward", 1)[1].split("\ndef ", 1)[0])


def test_the_slope_of_relu_is_told_from_what_is_kept_anyway() -> None:
    def layer(x: Any, weight: Any, bias: Any) -> Any:
        return F.relu(F.linear(x, weight, bias))

    made = derived(layer, (r(3, 4), r(5, 4), r(5)), {})
    assert "Saves x, weight, output." in made.source and "grad_output * (output > 0)" in made.source
    assert "F.linear(x, weight, bias)" in made.source


def test_softplus_has_the_slope_that_people_write() -> None:
    def mish(x: Any) -> Any:
        return x * torch.tanh(F.softplus(x))

    text = backward_of(mish, r(3, 4))
    assert "torch.where" not in text and "tanh_x" not in text


def test_numbers_meet_through_operations_that_move() -> None:
    def distances(x: Any, y: Any) -> Any:
        return torch.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1) + 1e-12)

    assert "0.5" not in backward_of(distances, r(5, 3), r(4, 3))


def test_quotients_that_are_known() -> None:
    def loss(x: Any, y: Any) -> Any:
        return torch.log(torch.cosh(x - y)).mean()

    assert "grad_output / x_minus_y.numel() * torch.tanh(x_minus_y)" in backward_of(loss, r(3), r(3))

    def entropy(x: Any, y: Any) -> Any:
        return x * torch.log(x / y)

    positive = [t.detach().abs().add(0.5).requires_grad_() for t in (r(3), r(3))]
    assert "torch.log(x_over_y) + 1" in backward_of(entropy, *positive)


def test_the_parts_of_a_stack_are_unbound_in_one_line() -> None:
    def turned(a: Any, b: Any) -> Any:
        return torch.stack([a[..., 0] * b[..., 1], a[..., 1] * b[..., 0]], -1)

    assert "grad_0, grad_1 = grad_output.unbind(-1)" in backward_of(turned, r(3, 2), r(3, 2))


def test_zeros_are_like_what_they_are_the_gradient_of() -> None:
    def variation(image: Any) -> Any:
        return (image[:, 1:] - image[:, :-1]).abs().sum()

    text = backward_of(variation, r(3, 4))
    assert "torch.zeros_like(image)" in text and "-= " in text


def test_a_number_of_dimensions_that_follows_is_not_tested() -> None:
    def divergence(mu: Any, logvar: Any) -> Any:
        return -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()

    source = derived(divergence, (r(4, 3), r(4, 3)), {}).source
    assert "mu.dim() != 2" in source and "logvar.dim()" not in source and "mu.shape != logvar.shape" in source


def test_channels_are_summed_by_their_dimensions() -> None:
    def scaled(x: Any, weight: Any) -> Any:
        return (x - x.mean((2, 3), keepdim=True)) * weight[:, None, None]

    assert ".sum((0, 2, 3))" in backward_of(scaled, r(2, 3, 4, 5), r(3))


def test_a_long_sum_is_written_term_by_term() -> None:
    assert in_terms("grad_x = alpha / beta", width=12) is None
    broken = in_terms("    grad_x = (alpha - beta * gamma) / delta", width=24)
    assert broken == ["    grad_x = (", "        alpha", "        - beta * gamma", "    ) / delta"]


def test_an_empty_tuple_of_dimensions_is_all_of_them() -> None:
    def error(a: Any, b: Any) -> Any:
        return (a - b).abs().pow(2).mean(dim=tuple(range(1, a.ndim)))

    assert "numel()" in backward_of(error, r(), r(3, 4))


def test_an_input_may_be_called_output() -> None:
    def weighted(output: Any, target: Any) -> Any:
        return (torch.softmax(output, 1) * target).sum(1).mean()

    assert "def setup_context(ctx, inputs, result)" in derived(weighted, (r(3, 4), r(3, 4).detach()), {}).source


def running(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    y = x[0]
    out = [y]
    for t in range(1, x.shape[0]):
        y = alpha * x[t] + (1 - alpha) * y
        out.append(y)
    return torch.stack(out)


def looks_back(x: torch.Tensor) -> torch.Tensor:
    out = [x[0]]
    for t in range(1, x.shape[0]):
        out.append(torch.tanh(out[-1] * x[t]))
    return torch.stack(out)


def test_a_loop_may_append_to_a_list_that_has_values() -> None:
    source = derived(running, (r(7, 3), r().detach().sigmoid().requires_grad_()), {}).source
    assert "for t in reversed(range(x.shape[0] - 1)):" in source


def test_a_loop_that_reads_its_own_list_is_refused_with_the_reason() -> None:
    with pytest.raises(Refused, match="reads the list that it appends to"):
        derived(looks_back, (r(7, 3),), {})


def test_formulas_find_the_sizes_of_matrices_and_name_what_they_do_not_know() -> None:
    from gradsmith.writing.formula import formula

    assert formula("layer", "(x @ w).relu()").names == ("x", "w")
    with pytest.raises(gs.GradsmithError, match="'foo', which torch"):
        formula("layer", "foo(x)")
