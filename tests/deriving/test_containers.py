"""Lists and tuples of tensors as arguments: every tensor is an argument of the Function, with the name that forward gives it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradsmith.deriving.deriving import derived, executed
from gradsmith.deriving.refusal import Refused


def r(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64).requires_grad_()


def turned(x: Any, pair: Any) -> Any:
    cos, sin = pair
    return x * cos + x.flip(-1) * sin


def joined(rows: Any, scale: Any) -> Any:
    return torch.cat([torch.cat(row, 1) for row in rows]) * scale


def weighed(terms: Any) -> Any:
    total = 0
    for value, weight in terms:
        total = total + value * weight
    return total


CASES = [
    (turned, lambda: (r(3, 4), (r(4), r(4)))),
    (joined, lambda: ([[r(2, 2), r(2, 3)], [r(1, 2), r(1, 3)]], r())),
    (weighed, lambda: ([(r(3), 0.5), (r(3), -2.0)],)),
]


def _leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _leaves(v)]
    return [value] if isinstance(value, torch.Tensor) else []


@pytest.mark.parametrize(("forward", "build"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_the_wrapper_has_the_users_signature_and_the_users_gradients(forward: Any, build: Any) -> None:
    torch.manual_seed(0)
    args = build()
    wrapper = executed(derived(forward, args, {}).source)[forward.__name__]
    leaves = _leaves(args)
    truth = torch.autograd.grad(forward(*args).sin().sum(), leaves)
    found = torch.autograd.grad(wrapper(*args).sin().sum(), leaves)
    assert all(torch.allclose(a, b) for a, b in zip(truth, found))


def test_names_are_those_that_forward_unpacks() -> None:
    source = derived(turned, (r(3, 4), (r(4), r(4))), {}).source
    assert "def forward(x, cos, sin):" in source and "Turned.apply(x, *pair)" in source


def test_another_length_is_refused_by_the_wrapper() -> None:
    wrapper = executed(derived(turned, (r(3, 4), (r(4), r(4))), {}).source)["turned"]
    with pytest.raises(ValueError, match=r"derived for len\(pair\) == 2"):
        wrapper(r(3, 4), (r(4), r(4), r(4)))


def test_a_list_with_something_else_in_it_is_refused() -> None:
    with pytest.raises(Refused, match="holds tensors and a str"):
        derived(turned, (r(3, 4), (r(4), "sin")), {})


def by_mask(x: Any, v: Any, keep: Any) -> Any:
    y = x * 2
    y[:, :, ~keep] = v[:, :, ~keep] ** 2
    return y


def by_index(x: Any, v: Any, index: Any) -> Any:
    y = x.clone()
    y[0, index] = v * x[1, index]
    return y * y


@pytest.mark.parametrize(
    ("forward", "args"),
    [
        (by_mask, (r(2, 3, 3), r(2, 3, 3), torch.tensor([True, False, True]))),
        (by_index, (r(3, 4), r(2), torch.tensor([2, 0]))),
    ],
)
def test_parts_of_an_index_may_be_tensors(forward: Any, args: Any) -> None:
    wrapper = executed(derived(forward, args, {}).source)[forward.__name__]
    truth = torch.autograd.grad(forward(*args).sin().sum(), args[:2])
    found = torch.autograd.grad(wrapper(*args).sin().sum(), args[:2])
    assert all(torch.allclose(a, b) for a, b in zip(truth, found))


def test_an_input_that_is_returned_has_a_gradient_of_its_own_name() -> None:
    def both(image: Any, scale: Any) -> Any:
        return image, image * scale

    made = derived(both, (r(3), r(3)), {})
    image, scale = r(3), r(3)
    same, scaled = made.wrapper(image, scale)
    found = torch.autograd.grad((same + scaled).sum(), (image, scale))
    assert torch.allclose(found[0], 1 + scale) and torch.allclose(found[1], image)


def test_a_second_derivative_that_is_not_finite_is_not_offered() -> None:
    def filled(x: Any, mask: Any) -> Any:
        return torch.nan_to_num(x.masked_fill(~mask, float("nan")).nanmean(-1), nan=0.0)

    mask = torch.tensor([[True, False, True], [False, False, False]])
    assert "once_differentiable" in derived(filled, (r(2, 3), mask), {}).source
