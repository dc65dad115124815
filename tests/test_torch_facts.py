"""Facts about PyTorch that gradsmith relies on. A release that changes one fails here, by name."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from gradsmith.lab.process import torch_says


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


def test_inside_forward_ctx_shows_whether_autograd_will_differentiate_the_call() -> None:
    from gradsmith.lab.process.torch_says import is_differentiated

    seen = []

    class Looks(Double):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            seen.append(is_differentiated(ctx))
            return 2 * x

    Looks.apply(leaf(2))
    with torch.no_grad():
        Looks.apply(leaf(2))
    Looks.apply(leaf(2).detach())
    assert seen == [True, False, False]


def test_a_custom_operator_asks_its_definition_for_setup_context_at_every_call() -> None:
    from gradsmith.lab.process.torch_says import custom_ops

    @torch.library.custom_op("gradsmith_facts::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return 2 * x

    assert doubled not in custom_ops()
    doubled.register_autograd(lambda ctx, g: 2 * g)
    assert doubled in custom_ops()
    seen = []
    doubled._setup_context_fn = lambda ctx, inputs, output: seen.append(len(inputs))
    doubled(leaf(2))
    torch.ops.gradsmith_facts.doubled(leaf(2))
    assert seen == [1, 1]


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
    from gradsmith.lab.subject.target import has_setup_context

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
    for compute in (x.sum, x.nan_to_num):  # isfinite: from torch 2.15 on
        with pytest.raises((NotImplementedError, RuntimeError)) as raised:  # RuntimeError: torch 2.6 to 2.8
            compute()
        assert torch_says.kernel_missing(raised.value)


# --- lab/process/torch_says.py: each text it recognises, provoked ------------------------------------------------------------


def raised(call: Callable[[], Any]) -> Exception:
    """What PyTorch raises there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            call()
    return caught.value


class Modern(torch.autograd.Function):
    """With setup_context, without vmap and jvp."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return 2 * grad_output


def test_a_wrong_number_of_gradients_is_said_with_the_number() -> None:
    class TwoInputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            return x + y

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Any:
            return grad_output

    x = leaf(2)
    assert torch_says.gradients_returned(str(raised(TwoInputs.apply(x, x).sum().backward))) == 1


def test_a_gradient_that_does_not_fit_is_said_with_place_and_shape() -> None:
    error = raised(lambda: returning(lambda g: g.new_zeros(2, 5)))
    assert torch_says.gradient_of_shape(str(error)) == (0, [2, 5])
    error = raised(lambda: returning(lambda g: g.new_zeros(1, 1)))
    assert torch_says.gradient_of_shape(str(error)) == (0, [1, 1])


def test_a_reentrant_checkpoint_refuses_grad_in_words() -> None:
    x = leaf(2)
    error = raised(lambda: torch.autograd.grad(checkpoint(torch.sin, x, use_reentrant=True).sum(), x))
    assert torch_says.only_under_backward(error)


def test_writing_into_a_leaf_is_said_so() -> None:
    assert torch_says.written_into_a_leaf(raised(lambda: leaf(2).add_(1)))
    assert torch_says.written_into_a_leaf(raised(lambda: leaf(2)[:1].add_(1)))


FLOATS = torch.zeros(3)
WANTED = {
    "square": [lambda: torch.linalg.det(torch.zeros(2, 3)), lambda: torch.linalg.eigh(torch.zeros(2, 3))],
    "integer": [
        lambda: FLOATS[FLOATS],
        lambda: torch.index_select(FLOATS, 0, FLOATS),
        lambda: torch.gather(FLOATS, 0, FLOATS),
        lambda: torch.nn.functional.one_hot(FLOATS),
        lambda: torch.nn.functional.embedding(FLOATS, torch.zeros(2, 2)),
        lambda: torch.nn.functional.nll_loss(torch.zeros(3, 2), FLOATS),
        lambda: FLOATS.bitwise_and(FLOATS),
    ],
    "channels": [lambda: torch.zeros(6).view(1, 4, 1, 1)],
    "bool": [
        lambda: FLOATS.masked_fill(FLOATS, 0.0),
        lambda: FLOATS.masked_select(FLOATS),
        lambda: torch.where(FLOATS, 1.0, 0.0),
    ],
}


@pytest.mark.parametrize(("what", "call"), [(what, call) for what, calls in WANTED.items() for call in calls])
def test_an_operation_says_what_it_wants_instead(what: str, call: Callable[[], Any]) -> None:
    assert torch_says.wanted_instead(str(raised(call))) == what


@pytest.mark.parametrize("call", [lambda: FLOATS.imag, lambda: torch.view_as_real(FLOATS)])
def test_an_operation_on_complex_numbers_asks_for_them(call: Callable[[], Any]) -> None:
    error = str(raised(call))
    assert torch_says.wants_complex(error)
    assert torch_says.speaks_of_complex(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(2, 2) @ torch.zeros(2, 2, dtype=torch.float64),
        lambda: torch.nn.functional.conv1d(torch.zeros(1, 2, 3), torch.zeros(1, 2, 2, dtype=torch.float64)),
        lambda: torch.index_add(FLOATS, 0, torch.tensor([0]), torch.zeros(1, dtype=torch.float64)),
        lambda: FLOATS.scatter_add(0, torch.tensor([0]), torch.zeros(1, dtype=torch.float64)),
    ],
)
def test_dtypes_that_differ_are_said_so(call: Callable[[], Any]) -> None:
    error = str(raised(call))
    assert torch_says.dtypes_differ(error)
    assert torch_says.speaks_of_dtype(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(2, 3) @ torch.zeros(2, 3),
        lambda: torch.zeros(2) + FLOATS,
        lambda: FLOATS.expand(3, 4),
        lambda: torch.zeros(6).view(4, 2),
        lambda: torch.cat([torch.zeros(2, 3), torch.zeros(3, 2)]),
        lambda: FLOATS.sum(3),
        lambda: FLOATS[torch.tensor([9])],
    ],
)
def test_sizes_that_differ_are_said_so(call: Callable[[], Any]) -> None:
    assert torch_says.sizes_differ(str(raised(call)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.linalg.cholesky(-torch.eye(2)),
        lambda: torch.linalg.inv(torch.zeros(2, 2)),
        lambda: torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)),
        lambda: torch.distributions.MultivariateNormal(torch.zeros(2), -torch.eye(2)),
        lambda: FLOATS[torch.tensor([9])],
    ],
)
def test_values_that_do_not_suit_are_said_so(call: Callable[[], Any]) -> None:
    error = raised(call)
    assert torch_says.values_do_not_suit(f"{type(error).__name__}: {error}")


def test_numpy_warns_of_numbers_that_are_no_good() -> None:
    numpy = pytest.importorskip("numpy")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        numpy.exp(numpy.array([1e9]))
        numpy.log(numpy.array([-1.0]))
    assert [torch_says.numbers_are_no_good(str(w.message)) for w in said] == [True, True]


def test_python_names_the_type_of_what_cannot_be_called() -> None:
    assert torch_says.is_not_callable(raised(lambda: torch.zeros(2)(1))) == "Tensor"
    assert torch_says.is_not_callable(raised(lambda: torch.zeros(2) + "")) is None


def test_a_kernel_that_does_not_exist_is_said_so() -> None:
    assert torch_says.kernel_missing(raised(lambda: torch.zeros(2, 2, dtype=torch.float16).det()))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said_so() -> None:
    assert torch_says.device_missing(raised(lambda: torch.zeros(2, device="cuda")))
    assert torch_says.device_missing(raised(lambda: torch.zeros(2).cuda()))


def test_a_process_group_that_is_not_there_is_said_so() -> None:
    assert torch_says.device_missing(raised(torch.distributed.get_rank))


def test_too_little_memory_is_said_so() -> None:
    assert torch_says.out_of_memory(raised(lambda: torch.empty(10**15)))


def _dual() -> None:
    with forward_ad.dual_level():
        Modern.apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.func.grad(lambda x: Double.apply(x).sum())(torch.ones(2)),
        lambda: torch.func.vmap(Modern.apply)(torch.ones(2)),
        lambda: torch.func.jvp(Modern.apply, (torch.ones(2),), (torch.ones(2),)),
        _dual,
    ],
)
def test_a_function_that_lacks_what_a_transform_needs_is_told_so(call: Callable[[], Any]) -> None:
    assert torch_says.transform_refused(raised(call))


@pytest.mark.parametrize("inner", [lambda x: x.item(), lambda x: x if x > 0 else -x, lambda x: x[x > 0]])
def test_what_vmap_cannot_do_is_said_so(inner: Callable[[Tensor], Any]) -> None:
    assert torch_says.vmap_refused(raised(lambda: torch.func.vmap(inner)(torch.ones(2))))


def test_what_compile_cannot_do_is_said_so() -> None:
    x = leaf(3)
    compiled = torch.compile(lambda x: x.sin() * x, backend="aot_eager")
    (grad,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    assert torch_says.compile_refused(raised(grad.sum().backward))


def test_only_nodes_of_functions_know_a_class() -> None:
    x = leaf(2)
    assert torch_says.forward_class(Double.apply(x).grad_fn) is Double
    assert torch_says.forward_class((2 * x).grad_fn) is None


def test_a_jvp_of_one_s_own_is_recognised() -> None:
    class WithJvp(Modern):
        @staticmethod
        def jvp(ctx: Any, tangent: Tensor) -> Tensor:
            return 2 * tangent

    assert torch_says.has_own_jvp(WithJvp)
    assert not torch_says.has_own_jvp(Modern)


def test_tensors_under_a_transform_are_recognised() -> None:
    seen = []
    torch.func.vmap(lambda x: seen.append(torch_says.under_a_transform(x)) or x)(torch.ones(2))
    assert seen == [True]
    assert not torch_says.under_a_transform(torch.ones(2))


def test_the_advice_of_vmap_can_be_switched_off_and_on() -> None:
    def advised() -> bool:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.func.vmap(torch.special.airy_ai)(torch.ones(2, 3))
        return bool(said)

    with torch_says.without_vmap_advice():
        assert not advised()
    assert advised()


def test_deterministic_mode_fills_new_memory_with_nan() -> None:
    torch_says.set_deterministic(True, warn_only=True)
    try:
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.empty(4).isnan().all()
    finally:
        torch_says.set_deterministic(False, warn_only=False)


def test_backward_knows_the_node_it_runs_for_and_nodes_know_their_order() -> None:
    nodes = []

    class Asks(Double):
        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Any:
            nodes.append(torch._C._current_autograd_node())
            return 2 * grad_output

    x = leaf(2)
    y = Asks.apply(x)
    before = torch._C._autograd._get_sequence_nr()
    z = y * 2
    assert y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr()
    assert before <= z.grad_fn._sequence_nr()
    z.sum().backward()
    assert nodes[0] is y.grad_fn or nodes[0].name() == y.grad_fn.name()


def test_forward_on_stand_ins_tells_which_sizes_it_compares() -> None:
    names, asked = torch_says.compared_sizes(lambda given: given[0] @ given[1], [torch.ones(3, 3), torch.ones(3, 3)])
    (rows, inner), (same, columns) = names
    assert len({rows, inner, same, columns}) == 4  # equal sizes are different symbols
    equal = [c for c in asked if c.kind == "equal"]
    assert [c.sizes for c in equal] == [frozenset((inner, same))]
    assert equal[0].holds({inner: 5, same: 5}) and not equal[0].holds({inner: 5, same: 4})


def test_products_of_batches_do_not_fix_sizes_of_stand_ins() -> None:
    """Up to torch 2.10 they do, or raise, where operations are not taken apart in Python."""
    weight = torch.ones(3, 4)
    ((batch, rows, inner), _), asked = torch_says.compared_sizes(
        lambda given: given[0] @ given[1] @ weight, [torch.ones(2, 3, 3), torch.ones(2, 3, 3)]
    )
    assert not any({batch, rows, inner} & c.sizes for c in asked if c.fixes)


def test_forward_on_stand_ins_tells_what_divides_a_size_and_what_bounds_it() -> None:
    def picky(given: list[Any]) -> Tensor:
        x, parts = given
        assert x.shape[1] > 2
        view: Tensor = x.view(parts, -1)
        return view

    ((rows, columns), (number,)), asked = torch_says.compared_sizes(picky, [torch.ones(4, 5), 2])
    at = {rows: 4, columns: 5, number: 2}
    assert all(c.holds(at) for c in asked)
    assert not all(c.holds({**at, rows: 5}) for c in asked if c.kind == "equal")
    assert all(c.holds({**at, rows: 6}) for c in asked if c.kind == "equal")
    assert not all(c.holds({**at, columns: 2}) for c in asked if c.kind == "order")


def test_stand_ins_can_carry_their_values() -> None:
    def branching(given: list[Any]) -> Any:
        return given[0] * 2 if bool(given[0].sum() > 0) else [int(i) for i in given[1][1:]]

    values = [-torch.ones(3), torch.tensor([0, 2])]
    with pytest.raises(RuntimeError, match="data-dependent"):
        torch_says.compared_sizes(branching, values)
    torch_says.compared_sizes(branching, values, real=True)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
def test_onednn_multiplies_matrices_of_float32_of_either_order() -> None:
    a, b = torch.randn(3, 5), torch.randn(5, 4)
    for right in (b, b.t().contiguous().t()):
        for left in (a, a.t().contiguous().t(), torch.randn(3, 10)[:, ::2]):
            product = torch_says.onednn_product(left, right)
            assert product is not None
            torch.testing.assert_close(product(), left @ right)
    assert torch_says.onednn_product(a, torch.randn(5, 8)[:, ::2]) is None
    assert torch_says.onednn_product(a.double(), b.double()) is None
    assert torch_says.onednn_product(a[:, :0], b[:0]) is None


@pytest.mark.skipif(
    "ATen parallel backend: OpenMP" not in torch.__config__.parallel_info(), reason="torch uses no OpenMP"
)
@pytest.mark.skipif(sys.platform != "linux", reason="OpenMP is found through the libraries that torch's own needs")
def test_a_function_can_be_given_to_the_threads_of_torchs_openmp() -> None:
    """GOMP_parallel(function, data, threads, flags); the caller is one of the team, and it returns when all are done."""
    address = torch_says.openmp_parallel()
    assert address is not None
    seen: list[int] = []
    member = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: seen.append(threading.get_ident()))
    parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(address)
    parallel(ctypes.cast(member, ctypes.c_void_p), None, 2, 0)
    assert len(seen) == 2 and threading.get_ident() in seen


def test_what_sync_batch_norm_computes_its_gradient_with_has_no_derivative() -> None:
    """`WITHOUT_DERIVATIVE` of the source. The kernels are for GPUs, autograd's part is for every device: it is asked with ours on the CPU."""
    x, channel, count = leaf(2, 3, 4), leaf(3), torch.ones(1, dtype=torch.int32)
    with torch.library._scoped_library("aten", "IMPL") as ours:
        ours.impl("batch_norm_backward_elemt", lambda *given: given[0].clone(), "CPU")
        ours.impl("batch_norm_backward_reduce", lambda *given: tuple(given[2].clone() for _ in range(4)), "CPU")
        elements = torch.batch_norm_backward_elemt(x, x, channel, channel, channel, channel, channel, count)
        sums = torch.batch_norm_backward_reduce(x, x, channel, channel, channel, True, True, True)
        for result in (elements, *sums):
            with pytest.raises(RuntimeError, match=r"derivative for aten::batch_norm_backward_.* is not implemented"):
                torch.autograd.grad(result.sum(), x)


@pytest.mark.parametrize("bound", [0.0, torch.zeros(())], ids=["number", "tensor"])
@pytest.mark.parametrize("side", ["min", "max"])
def test_what_a_clamp_hands_back_at_its_bound_is_everything_or_the_least(side: str, bound: float | Tensor) -> None:
    """https://github.com/pytorch/pytorch/pull/191142"""
    x = torch.zeros((), requires_grad=True)
    (slope,) = torch.autograd.grad(x.clamp(**{side: bound}), x)
    least = 0.5 if isinstance(bound, Tensor) else 0.0
    assert slope == (least if torch_says.clamp_stops_at_its_bounds() else 1.0)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_a_list_of_lists_is_an_index_for_each_dimension_or_one_tensor() -> None:
    x, index = torch.arange(9).reshape(3, 3), [[0, 2], [1, 1]]
    as_tuple = torch_says.reads_as_tuple(index)
    assert x[index].equal(x[0:3:2, 1] if as_tuple else x[torch.tensor(index)])
    assert not torch_says.reads_as_tuple([0, 2]) and x[[0, 2]].equal(x[0:3:2])


@pytest.mark.parametrize("larger", [torch.fmax, torch.fmin])
def test_equal_arguments_of_fmax_share_the_gradient_or_the_first_has_it(larger: Callable[..., Tensor]) -> None:
    x, y = torch.zeros((), requires_grad=True), torch.zeros((), requires_grad=True)
    slopes = torch.autograd.grad(larger(x, y), (x, y))
    assert slopes == ((0.5, 0.5) if torch_says.fmax_shares_between_equals() else (1.0, 0.0))


def test_a_subclass_that_lacks_an_operation_says_so() -> None:
    from torch.masked import masked_tensor

    with pytest.raises(TypeError) as caught:
        masked_tensor(torch.ones(2), torch.tensor([True, False])).new_zeros(3)
    assert torch_says.subclass_lacks(caught.value)


def test_batch_norm_is_wrong_for_a_strided_weight_where_layout_dependent_does_not_ask() -> None:
    """`layout-dependent` gives the parameters of a module in no other layout: PyTorch's own backward reads them as contiguous."""
    x, v = (torch.randn(6, 4, dtype=torch.float64, requires_grad=True) for _ in "xv")
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    strided = torch.zeros(8, dtype=torch.float64)[::2].copy_(weight)
    gradients = [
        torch.autograd.grad(torch.nn.functional.batch_norm(x, None, None, each, None, True), x, v)[0]
        for each in (weight, strided)
    ]
    assert not torch.allclose(*gradients)


def test_equal_arguments_of_maximum_share_the_gradient() -> None:
    x, y = torch.zeros((), requires_grad=True), torch.zeros((), requires_grad=True)
    assert torch.autograd.grad(torch.maximum(x, y), (x, y)) == (0.5, 0.5)
