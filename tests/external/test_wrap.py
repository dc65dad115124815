"""`gs.wrap`: foreign functions as torch callables, whatever goes in and comes out."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

import gradsmith as gs
from gradsmith.external import ExternalError
from gradsmith.external.stencil import stencil


def _x(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.5).to(dtype).requires_grad_()


@pytest.mark.parametrize("method", ["auto", "central", "forward", "richardson", "complex-step"])
def test_every_method_gives_the_derivative(method: str) -> None:
    wave = gs.wrap(lambda x, y: np.sin(x) * y + x**2, method=method)
    x, y = _x(4), _x(4, seed=1)
    wave(x, y).sum().backward()
    tolerance = 1e-5 if method == "forward" else 1e-8
    torch.testing.assert_close(x.grad, (x.cos() * y + 2 * x).detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(y.grad, x.sin().detach(), rtol=tolerance, atol=tolerance)
    assert wave.statement is not None and wave.statement.grade == "good"


def test_auto_takes_the_complex_step_where_the_function_allows_it_and_differences_elsewhere() -> None:
    smooth, real_only = gs.wrap(np.exp), gs.wrap(lambda x: np.abs(x) ** 3)
    for wrapped in (smooth, real_only):
        wrapped(_x(3)).sum().backward()
    assert smooth.statement is not None and smooth.statement.method == "complex-step"
    assert real_only.statement is not None and real_only.statement.method in ("central", "forward", "richardson")


def test_spsa_is_honest_about_its_error_and_runs_when_that_is_accepted() -> None:
    rough = gs.wrap(lambda x: (x**2).sum(), method="spsa", samples=4000, accept_error=True)
    x = _x(6)
    rough(x).backward()
    assert x.grad is not None and rough.statement is not None
    off = float((x.grad - 2 * x.detach()).norm() / (2 * x.detach()).norm())
    assert off < 3 * rough.statement.error and rough.statement.error > 0.01
    with pytest.raises(gs.PoorGradientError, match="accept_error=True"):
        gs.wrap(lambda x: (x**2).sum(), method="spsa")(_x(6)).backward()


def test_nested_arguments_and_outputs_keep_their_structure() -> None:
    def model(params: dict[str, Any], scale: float, *, shift: Any) -> dict[str, Any]:
        return {"y": params["a"] * scale + shift, "pair": (params["b"].sum(), np.arange(3))}

    wrapped = gs.wrap(model)
    a, b, shift = _x(2), _x(3), _x(2)
    out = wrapped({"a": a, "b": b}, 3.0, shift=shift)
    assert set(out) == {"y", "pair"} and out["pair"][1].dtype == torch.int64 and not out["pair"][1].requires_grad
    (out["y"].sum() + 2 * out["pair"][0]).backward()
    torch.testing.assert_close(a.grad, torch.full((2,), 3.0, dtype=torch.float64))
    torch.testing.assert_close(b.grad, torch.full((3,), 2.0, dtype=torch.float64))
    torch.testing.assert_close(shift.grad, torch.ones(2, dtype=torch.float64))
    assert {i.name for i in wrapped.statement.inputs} == {"params['a']", "params['b']", "shift"}  # type: ignore[union-attr]


def test_only_gradients_that_are_needed_are_computed() -> None:
    count = 0

    def counted(x: Any, y: Any) -> Any:
        nonlocal count
        count += 1
        return np.abs(x).sum() * np.abs(y).sum()

    wrapped = gs.wrap(counted, method="central")
    x, y = _x(3), _x(50).detach()
    wrapped(x, y).backward()
    count = 0
    wrapped(x, y).backward()
    assert count == 1 + 1 + 2 * 3 and y.grad is None  # forward, the point again, two for each element of x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dtypes_are_carried_back(dtype: torch.dtype) -> None:
    seen = []

    def square(x: Any) -> Any:
        seen.append(x.dtype)
        return x * x

    x = _x(3, dtype=dtype)
    y = gs.wrap(square)(x)
    y.sum().backward()
    assert y.dtype == dtype and x.grad is not None and x.grad.dtype == dtype
    assert {kind for kind in seen if kind.kind == "f"} == {np.dtype("float64")}


def test_rows_are_measured_together_when_batched() -> None:
    count = 0

    def rows(x: Any, theta: Any) -> Any:
        nonlocal count
        count += 1
        return np.sin(x).sum(axis=1, keepdims=True) * np.abs(theta)

    wrapped = gs.wrap(rows, batched=True, shared=("theta",), method="central")
    x, theta = _x(20, 3), _x(1)
    wrapped(x, theta).sum().backward()
    torch.testing.assert_close(x.grad, (x.cos() * theta).detach(), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(theta.grad, x.sin().sum().detach().reshape(1), rtol=1e-8, atol=1e-8)
    count = 0
    wrapped(x, theta).sum().backward()
    assert count == 2 + 2 * (3 + 1)  # and not 2 * 61


def test_a_function_of_one_row_is_called_row_by_row() -> None:
    def one(x: Any, theta: Any) -> Any:
        assert x.shape == (3,)
        return float(np.sum(np.cos(x)) * theta[0])

    wrapped = gs.wrap(one, batched="rows", shared=("theta",))
    x, theta = _x(5, 3), _x(1)
    out = wrapped(x, theta)
    assert out.shape == (5,)
    out.sum().backward()
    torch.testing.assert_close(x.grad, (-x.sin() * theta).detach(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["vjp", "jacobian", "jvp"])
def test_a_given_derivative_is_used_and_verified(kind: str) -> None:
    matrix = np.arange(6.0).reshape(2, 3) + 1
    given: dict[str, Any] = {
        "vjp": lambda g, x: matrix.T @ g * 1.0,
        "jacobian": lambda x: matrix,
        "jvp": lambda t, x: matrix @ t,
    }
    wrapped = gs.wrap(lambda x: matrix @ x, **{kind: given[kind]})
    x = _x(3)
    wrapped(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.from_numpy(matrix.sum(axis=0)))
    assert wrapped.verified


def test_a_wrong_vjp_is_refused_before_its_first_use() -> None:
    wrapped = gs.wrap(lambda x: x**2, vjp=lambda g, x: g * x)
    with pytest.raises(gs.PoorGradientError, match="vjp that was given"):
        wrapped(_x(3))


def test_compiled_and_checkpointed_it_gives_the_same() -> None:
    wrapped = gs.wrap(lambda x, k: {"s": np.sin(x) * k, "c": np.cos(x)}, name="both")

    def loss(x: torch.Tensor) -> torch.Tensor:
        out = wrapped(x * 2, 3)
        return (out["s"] + out["c"]).sum()

    x = _x(4)
    (expected,) = torch.autograd.grad(loss(x), x)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (got,) = torch.autograd.grad(compiled(x), x)
    torch.testing.assert_close(got, expected)
    (again,) = torch.autograd.grad(checkpoint(loss, x, use_reentrant=False), x)
    torch.testing.assert_close(again, expected)


def test_it_compiles_before_it_was_ever_called() -> None:
    wrapped = gs.wrap(lambda x: np.log(x)[:2])
    x = _x(4)
    compiled = torch.compile(lambda x: wrapped(x) * 2, fullgraph=True, backend="aot_eager")
    (got,) = torch.autograd.grad(compiled(x).sum(), x)
    torch.testing.assert_close(got, torch.cat([2 / x[:2].detach(), torch.zeros(2, dtype=torch.float64)]))


def test_the_op_passes_opcheck() -> None:
    wrapped = gs.wrap(np.tanh)
    x = _x(3)
    wrapped(x)
    results = torch.library.opcheck(wrapped.op, ([x], 0))
    assert set(results.values()) == {"SUCCESS"}


def test_under_autocast_the_function_still_computes_in_float64() -> None:
    wrapped = gs.wrap(np.exp)
    layer = torch.nn.Linear(3, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = wrapped(layer(torch.ones(1, 3)))
    out.float().sum().backward()
    assert out.dtype == torch.bfloat16 and layer.weight.grad is not None and bool(layer.weight.grad.isfinite().all())


def test_double_backward_is_refused_in_words() -> None:
    wrapped = gs.wrap(np.sin)
    x = _x(2)
    (grad,) = torch.autograd.grad(wrapped(x).sum(), x, create_graph=True)
    with pytest.raises(ExternalError, match="differentiated once only"):
        torch.autograd.grad(grad.sum(), x)


def test_torch_func_gives_what_torch_gives() -> None:
    wrapped, plain = gs.wrap(lambda x: np.sin(x) * x), lambda x: x.sin() * x
    x, y = _x(3).detach(), _x(3, seed=1).detach()
    func = torch.func

    def of(fn: Any) -> list[torch.Tensor]:
        inside = func.grad(lambda a: func.vjp(lambda b: fn(a * b), y)[0].sum())
        rows = func.vmap(func.grad(lambda a: fn(a).sum()))
        return [func.jacrev(fn)(x), func.vmap(fn, in_dims=1)(torch.outer(x, y)), rows(torch.outer(x, y)), inside(x)]

    torch.testing.assert_close(of(wrapped), of(plain))
    with pytest.raises(ExternalError, match="differentiated once only"):
        func.grad(lambda a: func.grad(lambda b: wrapped(a * b).sum())(y).sum())(x)


def test_forward_mode_and_batches_of_gradients_are_refused_and_not_dropped() -> None:
    wrapped, x = gs.wrap(np.sin), _x(3)
    for call in (
        lambda: torch.func.jvp(wrapped, (x.detach(),), (x.detach(),)),
        lambda: torch.func.hessian(lambda a: wrapped(a).sum())(x.detach()),
    ):
        with pytest.raises(ExternalError, match="no forward mode"):
            call()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(ExternalError, match="no forward mode"):
        wrapped(torch.autograd.forward_ad.make_dual(x.detach(), x.detach()))
    with pytest.raises(ExternalError, match="one grad_output at a time"):
        torch.autograd.grad(wrapped(x), x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)


def test_copied_and_pickled_it_still_works() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 3))
    net.simulation = gs.wrap(np.tanh, workers=2)  # type: ignore[assignment]
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        x = _x(3)
        other.simulation(x).sum().backward()
        torch.testing.assert_close(x.grad, 1 - x.detach().tanh() ** 2)
        other.simulation.close()
    given = copy.deepcopy(gs.wrap(lambda x: x**2, vjp=lambda g, x: 2 * g * x))
    x = _x(2)
    given(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_inputs_without_elements_have_gradients_without_elements() -> None:
    x = torch.zeros(0, 3, dtype=torch.float64, requires_grad=True)
    gs.wrap(np.sin)(x).sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape


def test_two_wrapped_functions_in_one_compiled_one() -> None:
    def both(x: torch.Tensor, first: Any) -> torch.Tensor:
        return first(x).sum()  # type: ignore[no-any-return]

    torch._dynamo.reset()
    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    for wrapped, slope in ((gs.wrap(np.sin), torch.cos), (gs.wrap(np.exp), torch.exp), (gs.wrap(np.sinh), torch.cosh)):
        x = _x(2)
        compiled(x, wrapped).backward()
        torch.testing.assert_close(x.grad, slope(x.detach()))


def test_complex_outputs_have_gradients() -> None:
    wrapped = gs.wrap(lambda x: np.exp(1j * x))
    x = _x(3)
    (wrapped(x) * (2 + 1j)).abs().sum().backward()  # |e^ix| is constant
    assert x.grad is not None and float(x.grad.abs().max()) < 1e-8
    y = _x(3)
    wrapped(y).real.sum().backward()
    torch.testing.assert_close(y.grad, -y.sin().detach(), rtol=1e-8, atol=1e-8)


def test_the_report_of_a_check_shows_the_statement() -> None:
    wrapped = gs.wrap(lambda x: np.abs(x) ** 1.5, method="central")
    report = gs.check(wrapped, _x(3), gradient="approximate", level="quick")
    assert report.ok, str(report)
    assert any("central" in note and "error" in note for note in report.notes)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["forward", "central", "richardson"]), st.sampled_from([0, 1, -1]))
def test_formulas_are_exact_for_polynomials_of_their_order(seed: int, method: str, side: int) -> None:
    formula = stencil(method, side)
    rng = np.random.default_rng(seed)
    coefficients = rng.standard_normal(formula.order + 1)
    values = np.array([sum(c * float(n) ** k for k, c in enumerate(coefficients)) for n in formula.nodes])
    assert abs(float(formula.weights @ values) - coefficients[1]) < 1e-9 * max(1, np.abs(values).max())


@pytest.mark.parametrize("seed", [2, 3])
def test_a_result_rounded_to_a_grid_never_looks_smooth_by_accident(seed: int) -> None:
    """Seven values on a grid lie on a smooth curve once in a hundred times; the stated error must hold then, too."""
    for part in _x(40, seed=seed).detach().split(8):
        wrapped = gs.wrap(lambda x: np.round(np.exp(np.real(x)), 7), method="central", accept_error=True)
        x = part.clone().requires_grad_()
        wrapped(x).sum().backward()
        assert x.grad is not None and wrapped.statement is not None
        assert float((x.grad - part.exp()).norm() / part.exp().norm()) < wrapped.statement.error


def test_a_step_that_is_a_multiple_of_a_period_is_not_taken_for_smooth() -> None:
    ripple = gs.wrap(lambda x: np.abs(x) ** 2 + 1e-4 * np.sin(2 * np.pi * 2**10 * np.abs(x)), accept_error=True)
    x = torch.tensor([1.0, 1.25], dtype=torch.float64, requires_grad=True)
    quality = ripple.quality(x)
    assert quality.inputs[0].noise > 1e-6 or quality.inputs[0].largest_step < 2**-12


def test_an_element_near_zero_has_the_noise_of_its_short_step() -> None:
    wrapped = gs.wrap(lambda x: np.log(np.exp(np.abs(x)).sum()), method="central")
    x = torch.linspace(0.5, 1.5, 20, dtype=torch.float64)
    x[3] = 1e-5
    x.requires_grad_()
    wrapped(x).backward()
    truth = x.detach().softmax(0)
    assert x.grad is not None and wrapped.statement is not None
    assert float((x.grad - truth).norm() / truth.norm()) < wrapped.statement.error


def test_steps_are_measured_anew_when_an_input_has_moved_far() -> None:
    wrapped = gs.wrap(lambda x: np.abs(x) ** 3, method="central")
    for size in (1.0, 1e4, 1e-4):
        x = torch.full((2,), size, dtype=torch.float64, requires_grad=True)
        wrapped(x).sum().backward()
        assert x.grad is not None
        assert abs(float(x.grad[0]) / (3 * size**2) - 1) < 1e-8


def test_a_good_gradient_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = _x(3)
        gs.wrap(np.sinh)(x).sum().backward()
