"""Facts about PyTorch that gradsmith relies on. A release that changes one fails here, by name."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return 2 * grad_output


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def returning(make: Any) -> Tensor:
    """The gradient that arrives when backward returns `make(grad_output)`."""

    class Returns(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Any:
            return make(grad_output)

    x = leaf(3)
    (grad,) = torch.autograd.grad(Returns.apply(x).sum(), x)
    return grad


def test_the_node_knows_its_class() -> None:
    y = Double.apply(leaf(2))
    assert y.grad_fn._forward_cls is Double


def test_a_patched_forward_and_backward_are_used_by_an_apply_taken_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Double.apply
    monkeypatch.setattr(Double, "forward", staticmethod(lambda ctx, x: 5 * x))
    monkeypatch.setattr(Double, "backward", staticmethod(lambda ctx, g: 7 * g))
    x = leaf(2)
    y = apply(x)
    assert torch.equal(y, 5 * x)
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [7, 7]


def test_ctx_shows_what_is_to_be_saved_inside_forward() -> None:
    seen = []

    class Looks(Double):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            seen.append(ctx.to_save[0] is x)
            return 2 * x

    Looks.apply(leaf(2))
    assert seen == [True]


def test_the_engine_casts_the_dtype_of_a_gradient_silently() -> None:
    assert returning(lambda g: g.float()).dtype == torch.float64


def test_the_engine_sums_an_expandable_gradient_silently() -> None:
    assert returning(lambda g: torch.ones(4, 3, dtype=g.dtype)).tolist() == [4, 4, 4]


def test_a_gradient_of_another_shape_raises() -> None:
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        returning(lambda g: g.sum())


def test_surplus_none_is_dropped_and_a_missing_gradient_raises() -> None:
    assert returning(lambda g: (g, None, None)).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        returning(lambda g: ())


def test_grad_output_of_sum_has_stride_zero() -> None:
    seen = []
    returning(lambda g: seen.append(g.stride()) or g)
    assert seen == [(0,)]


def test_an_output_on_ctx_is_a_cycle_that_only_the_collector_frees() -> None:
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.y = x.exp()
            return ctx.y

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return grad_output * ctx.y

    gc.collect()
    gc.disable()
    try:
        node = weakref.ref(Keeps.apply(leaf(2)).grad_fn)
        assert node() is not None
        gc.collect()
        assert node() is None
    finally:
        gc.enable()


def test_a_saved_view_of_an_output_is_never_freed() -> None:
    class Leaks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            y = x.exp()
            ctx.save_for_backward(y.view(-1))
            return y

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return grad_output

    node = weakref.ref(Leaks.apply(leaf(2)).grad_fn)
    gc.collect()
    assert node() is not None


def test_an_error_node_behind_once_differentiable_is_walked_past_by_autograd_grad() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return 3 * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return 3 * grad_output

    x, v = leaf(2), leaf(2)
    (grad,) = torch.autograd.grad(Once.apply(x), x, v, create_graph=True)
    assert type(grad.grad_fn).__name__ == "Error"
    assert torch.autograd.grad(grad.sum(), v, allow_unused=True) == (None,)


def test_once_differentiable_gives_a_silent_constant_when_grad_output_needs_no_gradient() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad_output * 3 * x**2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (grad,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((x * grad).sum(), x)
    assert second.tolist() == [3.0, 12.0]  # the truth is [9, 36]


def test_setup_context_of_the_default_is_recognisable() -> None:
    from gradsmith.lab.target import has_setup_context

    class Split(torch.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return 2 * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    assert has_setup_context(Split)
    assert not has_setup_context(Double)


def test_the_version_counter_misses_writes_through_data_and_numpy() -> None:
    x = torch.ones(2)
    before = x._version
    x.data.mul_(2)
    x.numpy()[0] = 9
    assert x._version == before
    assert x.tolist() == [9, 2]


def test_a_wrapper_subclass_has_no_memory_of_its_own() -> None:
    class Wrapper(Tensor):
        @staticmethod
        def __new__(cls, inner: Tensor) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise NotImplementedError

    with pytest.raises(RuntimeError, match="invalid python storage"):
        Wrapper(torch.ones(2)).untyped_storage().data_ptr()


def test_freeing_a_storage_leaves_shape_and_strides() -> None:
    x = torch.ones(4, 3)
    x.untyped_storage().resize_(0)
    assert x.shape == (4, 3)
    assert x.untyped_storage().nbytes() == 0
    assert torch.ops.aten.detach.default.is_view  # reads nothing, and so may be given such a tensor
    assert torch.ops.aten.view.default.is_view
    assert not torch.ops.aten.clone.default.is_view


def test_operators_that_may_draw_carry_a_tag_also_where_they_do_not() -> None:
    drawing = torch.Tag.nondeterministic_seeded
    assert drawing in torch.ops.aten.rand_like.default.tags
    assert drawing in torch.ops.aten.bernoulli_.float.tags
    assert drawing in torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default.tags
    assert drawing not in torch.ops.aten.mul.Tensor.tags


def test_random_numbers_are_drawn_in_the_order_of_the_memory() -> None:
    plain = torch.zeros(4, 3)
    transposed = torch.zeros(3, 4).t()
    drawn = [torch.manual_seed(0) and torch.rand_like(x) for x in (plain, transposed)]
    assert drawn[0].shape == drawn[1].shape
    assert not torch.equal(*drawn)


def test_float8_can_be_kept_and_cast_and_not_computed_in() -> None:
    x = torch.ones(3).to(torch.float8_e4m3fn)
    assert torch.equal(x.clone().float(), torch.ones(3))
    with pytest.raises(NotImplementedError):
        x.isfinite()
    with pytest.raises(NotImplementedError):
        x.nan_to_num()
