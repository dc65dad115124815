"""Hessians, their products with vectors, Jacobians; and whether custom Functions on the way allow them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradsmith as gs


def cubes(x: Tensor) -> Tensor:
    return (x**3).sum() + (x[0] * x[1])


X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
H = torch.func.hessian(cubes)(X)


class Cube(torch.autograd.Function):
    """Right to every order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


class ForgetfulCube(Cube):
    """Its gradient is right, and a constant to autograd."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x.detach() ** 2 * grad_output


class OnceCube(Cube):
    """Refuses a second derivative."""

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def loss(y: Tensor) -> Tensor:
    return y.square().mean()


def matrix_of(net: nn.Module, x: Tensor) -> Tensor:
    """The Hessian by the parameters, all in one matrix, by plain autograd."""
    parameters = list(net.parameters())
    first = torch.autograd.grad(loss(net(x)), parameters, create_graph=True)
    flat = torch.cat([g.flatten() for g in first])
    rows = [torch.autograd.grad(one, parameters, retain_graph=True, materialize_grads=True) for one in flat]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


class TestFunctions:
    def test_hessian_vector_product(self) -> None:
        v = torch.randn(3, dtype=torch.float64)
        torch.testing.assert_close(gs.hvp(cubes, X, v), H @ v)

    def test_a_batch_of_vectors(self) -> None:
        v = torch.randn(5, 3, dtype=torch.float64)
        torch.testing.assert_close(gs.hvp(cubes, X, v, batched=True), v @ H)

    def test_several_inputs(self) -> None:
        def f(a: Tensor, b: Tensor) -> Tensor:
            return (a * b).sum() ** 2

        a, b = torch.randn(2, dtype=torch.float64), torch.randn(2, dtype=torch.float64)
        u, w = torch.randn(2, dtype=torch.float64), torch.randn(2, dtype=torch.float64)
        blocks = gs.hessian(f, a, b)
        found = gs.hvp(f, (a, b), (u, w))
        torch.testing.assert_close(found[0], blocks[0][0] @ u + blocks[0][1] @ w)
        torch.testing.assert_close(found[1], blocks[1][0] @ u + blocks[1][1] @ w)

    def test_hessian_whole_in_chunks_and_batched(self) -> None:
        torch.testing.assert_close(gs.hessian(cubes, X), H)
        torch.testing.assert_close(gs.hessian(cubes, X, chunk=2), H)
        many = torch.randn(4, 3, dtype=torch.float64)
        torch.testing.assert_close(
            gs.hessian(cubes, many, batched=True), torch.stack([torch.func.hessian(cubes)(x) for x in many])
        )

    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_jacobian(self, mode: str) -> None:
        many = torch.randn(4, 3, dtype=torch.float64)
        torch.testing.assert_close(gs.jacobian(torch.sin, X, mode=mode), torch.diag(X.cos()))
        torch.testing.assert_close(gs.jacobian(torch.sin, many, batched=True, mode=mode), torch.diag_embed(many.cos()))

    def test_a_linear_function_has_a_hessian_of_zeros(self) -> None:
        assert not gs.hvp(lambda x: x.sum(), X, X).any()

    def test_functions_of_the_old_style(self) -> None:
        torch.testing.assert_close(gs.hvp(lambda x: Cube.apply(x).sum(), X, torch.ones_like(X)), 6 * X)


class TestModules:
    def test_hvp_and_hessian_by_the_parameters(self) -> None:
        net, x = model(), torch.randn(6, 3, dtype=torch.float64)
        v = {name: torch.randn_like(p) for name, p in net.named_parameters()}
        matrix = matrix_of(net, x)
        product = gs.hvp(net, x, v, loss=loss)
        assert list(product) == list(v)
        along = torch.cat([u.flatten() for u in v.values()])
        torch.testing.assert_close(torch.cat([p.flatten() for p in product.values()]), matrix @ along)
        blocks = gs.hessian(net, x, loss=loss)
        torch.testing.assert_close(blocks["0.bias"]["0.bias"], matrix[12:16, 12:16])
        assert all(p.grad is None for p in net.parameters())

    def test_a_batch_of_directions(self) -> None:
        net, x = model(), torch.randn(6, 3, dtype=torch.float64)
        v = {name: torch.randn(2, *p.shape, dtype=p.dtype) for name, p in net.named_parameters()}
        found = gs.hvp(net, x, v, loss=loss, batched=True)
        one = gs.hvp(net, x, {name: u[1] for name, u in v.items()}, loss=loss)
        torch.testing.assert_close({name: u[1] for name, u in found.items()}, one)

    def test_jacobian_by_the_parameters(self) -> None:
        net, x = model(), torch.randn(6, 3, dtype=torch.float64)
        assert gs.jacobian(net, x)["2.weight"].shape == (6, 1, 1, 4)


class TestSupport:
    def test_no_custom_function(self) -> None:
        found = gs.second_order(torch.sin, X)
        assert found.ok and "No custom Function on the way" in str(found)

    def test_each_function_on_the_way_is_named(self) -> None:
        found = gs.second_order(lambda x: ForgetfulCube.apply(Cube.apply(x)).sum(), X)
        assert not found.ok
        assert {one.name: one.supported for one in found.functions} == {"Cube": True, "ForgetfulCube": False}
        assert "Cube: second order is right" in str(found)

    def test_a_function_that_refuses_is_not_supported(self) -> None:
        found = gs.second_order(lambda x: OnceCube.apply(x).sum(), X)
        assert not found.ok and found.functions[0].reason

    def test_our_own_ops(self) -> None:
        assert gs.second_order(lambda x: gs.ops.swish(gs.ops.rms_norm(x, 3), 1.5).sum(), X).ok

    def test_a_module(self) -> None:
        class Layer(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return Cube.apply(x)

        assert gs.second_order(Layer(), X).ok


BAD = [
    (lambda: gs.hvp(cubes, X, X[:2]), ValueError, r"v has shape \(2,\) where the input has \(3,\)"),
    (lambda: gs.hvp(cubes, X, (X, X)), ValueError, "structure of what is differentiated: 1 tensor"),
    (lambda: gs.hvp(torch.sin, X, X), ValueError, r"must give one number, it gives \(3,\)"),
    (lambda: gs.hvp(3, X, X), TypeError, "expected a function or a module, not int"),
    (lambda: gs.hvp(nn.ReLU(), X, {}), ValueError, "ReLU has no parameter that requires grad"),
    (lambda: gs.hvp(nn.Linear(3, 1).double(), X, {"weight": X}), ValueError, "a dict with the keys .'bias', 'weight'."),
    (lambda: gs.hessian(cubes), TypeError, "give the tensors"),
    (lambda: gs.hessian(cubes, torch.tensor([1, 2])), TypeError, "must be a floating-point tensor, not torch.int64"),
    (lambda: gs.hessian(cubes, 1.5), TypeError, "hold other arguments in a lambda"),
    (lambda: gs.hessian(nn.Linear(3, 1).double(), X, batched=True), TypeError, "batched=True is for functions"),
    (lambda: gs.jacobian(torch.sin, X, mode="sideways"), ValueError, "mode must be"),
    (lambda: gs.jacobian(torch.add, X, X[:2], batched=True), ValueError, "same first dimension"),
    (lambda: gs.second_order(3), TypeError, "expected a function or a module"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "sentence"), BAD, ids=[sentence[:40] for _, _, sentence in BAD])
def test_bad_input_gets_a_sentence(call: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()
