"""Facts about torch that the recurrent engine relies on. A release that changes one fails here, by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

aten = torch.ops.aten


def test_make_fx_traces_the_backward_of_custom_functions() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g.cosh()

    def joint(x: Tensor, g: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(Twice.apply(x), x, g)[0]

    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        graph = make_fx(joint)(torch.empty(3), torch.empty(3)).graph
    assert any(node.target is aten.cosh.default for node in graph.nodes)


def test_fake_tracing_refuses_values_and_numpy() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(3)
        with pytest.raises(Exception, match=r"_local_scalar_dense|data-dependent"):
            bool(x.sum() > 0)
        with pytest.raises(Exception, match=r".+"):
            x.numpy()


def test_function_modes_see_tensors_in_closures_but_not_function_apply() -> None:
    seen: list[Any] = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x

    w = torch.randn(3, 3)
    cell = torch.nn.LSTMCell(3, 3)
    with Watch():
        w.t()
        cell(w)
        before = len(seen)
        Same.apply(w)
    assert torch.Tensor.t in seen
    assert any(getattr(f, "__name__", "") == "lstm_cell" for f in seen)
    assert all(getattr(f, "__name__", "") != "apply" for f in seen[before:])


def test_random_operators_are_tagged() -> None:
    for operator in (aten.rand_like.default, aten.bernoulli.default, aten.native_dropout.default, aten.randn.default):
        assert torch.Tag.nondeterministic_seeded in operator.tags


def test_functionalize_removes_in_place_operations() -> None:
    def f(x: Tensor) -> Tensor:
        y = x.clone()
        y.add_(1)
        return y

    traced = make_fx(torch.func.functionalize(f))(torch.zeros(2))
    assert all("add_" not in str(node.target) for node in traced.graph.nodes)


def test_decompositions_exist() -> None:
    from gradsmith.recurrent.decompositions import table

    for operator in (
        aten.tanh_backward.default,
        aten.sigmoid_backward.default,
        aten.native_layer_norm_backward.default,
    ):
        assert operator in table()
    for operator in (
        aten._softmax.default,
        aten.gelu.default,
        aten.slice_backward.default,
        aten.select_backward.default,
    ):
        assert operator in table()


def test_pytrees_name_their_leaves() -> None:
    leaves, _ = pytree.tree_flatten_with_path({"a": [1, (2,)]})
    assert [pytree.keystr(path) for path, _ in leaves] == ["['a'][0]", "['a'][1][0]"]


def test_saved_tensor_hooks_nest_with_the_innermost_winning() -> None:
    outer: list[Tensor] = []
    x = torch.ones(2, requires_grad=True)
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: outer.append(t) or t, lambda t: t),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        x.sin()
    assert not outer


def test_unbind_has_one_backward_for_all_steps() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    assert len({piece.grad_fn for piece in x.unbind(0)}) == 1


def test_functorch_can_be_asked_for() -> None:
    assert not torch._C._are_functorch_transforms_active()
    assert torch.func.vmap(lambda x: x * torch._C._are_functorch_transforms_active())(torch.ones(2)).all()


def test_a_function_can_be_marked_constant_without_importing_dynamo() -> None:
    """in_graph.py sets the mark itself, because torch.compiler.assume_constant_result imports torch._dynamo."""

    def constant() -> int:
        return 1

    assert torch.compiler.assume_constant_result(constant)._dynamo_marked_constant  # type: ignore[attr-defined]


def test_whether_dynamo_looks_at_frames_can_be_asked() -> None:
    from torch._C._dynamo.eval_frame import get_eval_frame_callback

    assert not get_eval_frame_callback()


def test_structures_can_be_written_as_json() -> None:
    spec = pytree.tree_structure(({"a": 1}, [2, 3]))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
