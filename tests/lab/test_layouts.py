"""Inputs that lie in memory in another way: every run keeps their layout, and a gradient that depends on it is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.lab import Arguments
from gradsmith.lab.measure.layouts import layouts
from gradsmith.lab.subject.copies import copied


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def function(forward: Any, backward: Any) -> type[torch.autograd.Function]:
    """A Function of these two; both get ctx."""

    class Sub(torch.autograd.Function):
        pass

    Sub.forward, Sub.backward = staticmethod(forward), staticmethod(backward)  # type: ignore[assignment]
    return Sub


def in_memory(x: Tensor) -> Tensor:
    """The elements as a kernel reads them that knows no strides."""
    return x.as_strided((x.numel(),), (1,)).reshape(x.shape)


def square(read: Any) -> type[torch.autograd.Function]:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    return function(forward, lambda ctx, g: 2 * g * read(ctx.saved_tensors[0]))


def product(read: Any) -> type[torch.autograd.Function]:
    """Two inputs in the same layout give the same sum in any order of memory: each has to be changed alone."""

    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return (x * w).sum() ** 2

    def backward(ctx: Any, g: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return 2 * g * (read(x) * read(w)).sum() * w, 2 * g * (read(x) * read(w)).sum() * x

    return function(forward, backward)


def gather(read: Any) -> type[torch.autograd.Function]:
    def forward(ctx: Any, x: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.n = x.shape[0]
        return x[ids]

    def backward(ctx: Any, g: Tensor) -> Any:
        return g.new_zeros(ctx.n, *g.shape[1:]).index_add(0, read(ctx.saved_tensors[0]), g), None

    return function(forward, backward)


def from_the_beginning(x: Tensor) -> Tensor:
    """Honours strides, but not where the tensor begins."""
    return x.as_strided(x.shape, x.stride(), 0)


CASES = {
    "one dimension": (square, in_memory, (leaf(6),)),
    "two dimensions": (square, in_memory, (leaf(4, 3),)),
    "the offset": (square, from_the_beginning, (leaf(5),)),
    "both inputs of a product": (product, in_memory, (leaf(4, 3), leaf(4, 3))),
    "the first of three dimensions": (square, lambda x: x.transpose(1, 2).contiguous().transpose(1, 2) if x.stride(0) > 1
                                      else in_memory(x), (leaf(2, 3, 4),)),
    "ids": (gather, in_memory, (leaf(6, 2), torch.tensor([4, 1, 5, 3]))),
}  # fmt: skip


def of_layout(subject: Any, inputs: tuple[Any, ...]) -> list[str]:
    report = gs.check(subject, *inputs, select=["layout-dependent"])
    return [f.message for f in report.findings if f.rule == "layout-dependent"]


@pytest.mark.parametrize("name", CASES)
def test_a_backward_that_ignores_the_layout_of_an_input_is_named(name: str) -> None:
    make, read, inputs = CASES[name]
    (message,) = of_layout(make(read), inputs)
    assert "backward returns a different gradient" in message and "grad_output" not in message


@pytest.mark.parametrize("name", CASES)
def test_a_backward_that_honours_strides_is_not(name: str) -> None:
    make, _, inputs = CASES[name]
    assert not of_layout(make(lambda x: x), inputs)


def test_parameters_of_a_module_lie_as_the_module_made_them() -> None:
    norm = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    report = gs.check(norm, torch.randn(6, 4, requires_grad=True), level="quick", select=["layout-dependent"])
    assert report.findings == []


def test_a_gradient_that_is_a_subclass_accuses_no_layout() -> None:
    """MaskedTensor has no new_zeros, which torch needs to hand a gradient back to strided memory."""
    from torch.masked.maskedtensor.core import MaskedTensor

    class Masked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, data: Tensor, mask: Tensor) -> Tensor:
            made: Tensor = MaskedTensor(data, mask)
            return made

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
            return grad_output, None

    report = gs.check(Masked, leaf(3, 4), torch.rand(3, 4) > 0.4, level="quick", select=["layout-dependent"])
    assert not report.errors


def test_an_input_that_forward_refuses_to_take_in_another_layout_hides_no_other() -> None:
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        assert w.is_contiguous(), "w must be contiguous"
        ctx.save_for_backward(x, w)
        return x * x * w

    def backward(ctx: Any, g: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return 2 * g * in_memory(x) * w, g * x * x

    (message,) = of_layout(function(forward, backward), (leaf(5), leaf(5)))
    assert "gradient of 'x'" in message and "every other element" in message


@pytest.mark.parametrize("shape", [(5,), (4, 3), (4, 1), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.complex64, torch.float16])
def test_copies_lie_in_memory_as_the_inputs_do(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    values = (torch.randn(shape, dtype=torch.float64) * 9).to(dtype)
    for name, made in layouts(values).items():
        made.requires_grad_(dtype.is_floating_point or dtype.is_complex)
        given = copied(Arguments.of((made,)))
        passed = given.args[0]
        assert (passed.stride(), passed.storage_offset()) == (made.stride(), made.storage_offset()), name
        assert torch.equal(passed.detach(), values) and passed.data_ptr() != made.data_ptr()
        if made.requires_grad:
            assert not passed.is_leaf
            (grad,) = torch.autograd.grad(passed, given.leaves[0], values)
            assert torch.equal(grad, values)


def test_an_expanded_input_is_copied_element_by_element() -> None:
    given = copied(Arguments.of((torch.ones(1).expand(3),)))
    assert given.args[0].stride() == (1,)


def test_a_small_view_of_a_large_tensor_is_a_small_copy() -> None:
    view = torch.zeros(100_000)[90_001:90_005]
    assert copied(Arguments.of((view,))).args[0].untyped_storage().nbytes() < 1000
