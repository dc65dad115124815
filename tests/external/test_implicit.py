"""`gs.implicit`: gradients of what solvers find."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.optimize
import torch

import gradsmith as gs
from gradsmith.external import ExternalError, NotConverged, SingularSystem


def _newton(residual: Any, x: torch.Tensor, *params: Any, steps: int = 30) -> torch.Tensor:
    for _ in range(steps):
        jacobian = torch.func.jacrev(residual)(x, *params)
        x = x - torch.linalg.solve(jacobian, residual(x, *params))
    return x


def _system(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ x + 0.1 * x**3 - b


def _problem(n: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    a = torch.eye(n, dtype=torch.float64) * 3 + torch.randn(n, n, dtype=torch.float64) * 0.3
    return a.requires_grad_(), torch.randn(n, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("linear", ["direct", "gmres", "auto"])
def test_a_root_has_the_gradient_that_autograd_gives_through_newton(linear: str) -> None:
    a, b = _problem()
    root = gs.implicit(_system, lambda a, b: _newton(_system, torch.zeros_like(b), a, b), linear=linear)
    weights = torch.arange(1.0, 5.0, dtype=torch.float64)
    expected = torch.autograd.grad((_newton(_system, torch.zeros_like(b), a, b) * weights).sum(), (a, b))
    got = torch.autograd.grad((root(a, b) * weights).sum(), (a, b))
    torch.testing.assert_close(got, expected)
    assert root.solves == 1


def test_a_fixed_point_and_a_scipy_solver() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.cos(x * w)

    def scipy_solver(w: torch.Tensor) -> Any:
        return scipy.optimize.fixed_point(lambda x: torch.cos(torch.from_numpy(x) * w).numpy(), [0.5, 0.5], xtol=1e-12)

    w = torch.tensor([0.8, 1.1], dtype=torch.float64, requires_grad=True)
    point = gs.implicit(step, scipy_solver, kind="fixed-point")
    x = point(w)
    x.sum().backward()
    s = torch.sin(x * w).detach()
    torch.testing.assert_close(w.grad, (-x * s / (1 + w * s)).detach())


def test_a_minimum_under_constraints() -> None:
    q = torch.tensor([2.0, 5.0, 1.0], dtype=torch.float64, requires_grad=True)

    def solve(q: torch.Tensor) -> torch.Tensor:
        inverse = 1 / q
        return inverse / inverse.sum()

    portfolio = gs.implicit(
        lambda x, q: (q * x * x).sum() / 2, solve, kind="minimum", constraints=lambda x, q: x.sum() - 1
    )
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    (expected,) = torch.autograd.grad((solve(q) * weights).sum(), q)
    (got,) = torch.autograd.grad((portfolio(q) * weights).sum(), q)
    torch.testing.assert_close(got, expected)


def test_a_large_minimum_is_solved_by_conjugate_gradients() -> None:
    n = 1500
    c = torch.linspace(1, 3, n, dtype=torch.float64, requires_grad=True)
    found = gs.implicit(lambda x, c: (c * x * x / 2 - x).sum(), lambda c: 1 / c, kind="minimum", check=False)
    found(c).sum().backward()
    torch.testing.assert_close(c.grad, (-1 / c**2).detach())
    assert found.last.startswith("cg")


def test_a_solver_that_had_not_converged_is_named_as_the_cause() -> None:
    a, b = _problem()
    hasty = gs.implicit(_system, lambda a, b: _newton(_system, torch.zeros_like(b), a, b, steps=1))
    b = (b * 20).detach().requires_grad_()
    with pytest.raises(NotConverged, match="had not converged"):
        hasty(a, b).sum().backward()


def test_a_singular_system_has_a_sentence() -> None:
    b = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    root = gs.implicit(lambda x, b: (x.sum() - b.sum()).expand(2), lambda b: b.detach().clone())
    with pytest.raises(SingularSystem, match="singular"):
        root(b).sum().backward()
    large = torch.ones(1200, dtype=torch.float64, requires_grad=True)
    x = gs.implicit(lambda x, b: (x.sum() - b.sum()).expand(1200), lambda b: b.detach().clone())(large)
    with pytest.raises(SingularSystem, match="singular"):
        (x * torch.randn(1200, dtype=torch.float64)).sum().backward()


def test_a_residual_of_another_problem_is_found_out() -> None:
    a = torch.tensor([4.0, 9.0], dtype=torch.float64, requires_grad=True)
    # 0 at the solution, and yet another function of a.
    root = gs.implicit(lambda x, a: x * x - 2 * a + a.detach(), lambda a: a.sqrt())
    with pytest.raises(gs.PoorGradientError, match="residual and solve disagree"):
        root(a).sum().backward()


def test_a_captured_parameter_and_a_wrong_number_of_equations_are_refused() -> None:
    weight = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    a = torch.tensor([4.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(ExternalError, match="not an argument"):
        gs.implicit(lambda x, a: weight * x - a, lambda a: a / 2)(a).sum().backward()
    with pytest.raises(ExternalError, match="one equation per unknown"):
        gs.implicit(lambda x, a: torch.cat([x - a, x]), lambda a: a.clone())(a).sum().backward()
    with pytest.raises(ExternalError, match="no kind is called 'roots'"):
        gs.implicit(lambda x, a: x - a, lambda a: a, kind="roots")


def _root() -> gs.external.Implicit:
    return gs.implicit(lambda x, a: x * x - a, lambda a: a.sqrt())


def test_a_second_derivative_is_refused_and_not_left_out() -> None:
    a = torch.tensor([4.0, 9.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(_root()(a).sum(), a, create_graph=True)
    with pytest.raises(ExternalError, match="differentiated once only"):
        (a.sum() + first.norm()).backward()


def test_what_has_no_numbers_is_refused_in_words() -> None:
    a = torch.tensor([4.0, 9.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(ExternalError, match=r"under torch\.func"):
        torch.func.grad(lambda a: _root()(a).sum())(a.detach())
    with pytest.raises(ExternalError, match="one grad_output at a time"):
        torch.autograd.grad(_root()(a), a, torch.eye(2, dtype=torch.float64), is_grads_batched=True)
    with pytest.raises(NotConverged, match="returned NaN"):
        gs.implicit(lambda x, a: x * x - a, lambda a: a * float("nan"))(a).sum().backward()
    with pytest.raises(ExternalError, match="through torch operations"):
        gs.implicit(lambda x, a: (x * x - a).detach(), lambda a: a.sqrt())(a).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_held_to_what_it_can_be(dtype: torch.dtype) -> None:
    a = torch.tensor([4.0, 9.0, 2.0], dtype=dtype, requires_grad=True)
    _root()(a).sum().backward()
    assert a.grad is not None and a.grad.dtype == dtype
    torch.testing.assert_close(a.grad, (0.5 / a.detach().sqrt()), rtol=2e-2, atol=0)


def test_compiled_it_stands_between_two_graphs() -> None:
    torch._dynamo.reset()
    a = torch.tensor([4.0, 9.0], dtype=torch.float64, requires_grad=True)
    root = _root()
    torch.compile(lambda a: (2 * root(a)).sum(), backend="aot_eager")(a).backward()
    torch.testing.assert_close(a.grad, 1 / a.detach().sqrt())
