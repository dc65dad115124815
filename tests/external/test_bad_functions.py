"""Functions that misbehave: each gets a sentence, and none a wrong gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import gradsmith as gs
from gradsmith.external import ExternalError


def _x(n: int = 3) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, n, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("value", [None, "text", object(), {}, np.array(["a"])], ids=lambda value: type(value).__name__)
def test_a_wrong_type_is_named(value: Any) -> None:
    with pytest.raises(ExternalError, match="Return NumPy arrays or numbers"):
        gs.wrap(lambda x: value)(_x())


def test_an_output_that_changes_its_shape() -> None:
    sizes = iter([2, 3])
    wrapped = gs.wrap(lambda x: np.zeros(next(sizes)))
    wrapped(_x())
    with pytest.raises(ExternalError, match="keep their shape"):
        wrapped(_x())
    adaptive = gs.wrap(lambda x: np.ones(int(1e4 * x[0])))
    with pytest.raises(ExternalError, match="keep their shape"):
        adaptive(_x()).sum().backward()


@pytest.mark.parametrize("failing", ["raises", "NaN"])
@pytest.mark.parametrize("side", [1, -1])
def test_outside_the_domain_steps_are_taken_inside(failing: str, side: int) -> None:
    def inside(x: Any) -> Any:
        if (side * np.real(x) < -1e-300).any():
            if failing == "raises":
                raise ValueError("outside of the domain")
            return np.full(x.shape, np.nan)
        return np.exp(x) + np.abs(x) ** 2

    wrapped = gs.wrap(inside, method="central")
    x = torch.tensor([0.0, side * 0.7], dtype=torch.float64, requires_grad=True)
    wrapped(x).sum().backward()
    expected = (x.exp() + 2 * x).detach()
    torch.testing.assert_close(x.grad, expected, rtol=1e-6, atol=1e-6)
    assert wrapped.statement is not None and wrapped.statement.inputs[0].one_sided == 1
    assert "one-sided" in str(wrapped.statement)


def test_a_domain_of_a_single_point() -> None:
    def point(x: Any) -> Any:
        if x[0] != 0.5:
            raise ValueError("only at 0.5")
        return x * 2

    with pytest.raises(ExternalError, match=r"no value on either side of 'x'\[0\] = 0.5.*only at 0.5"):
        gs.wrap(point, method="central", accept_error=True)(_x()).sum().backward()


def test_nan_at_the_inputs_themselves() -> None:
    wrapped = gs.wrap(lambda x: np.where(x > 1, np.nan, x))
    with pytest.raises(ExternalError, match=r"returned NaN .output 0 at .2.. at these inputs"):
        wrapped(_x()).sum().backward()
    x = _x()
    wrapped(x)[:2].sum().backward()  # an output that is kept out of the loss does no harm
    torch.testing.assert_close(x.grad, torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_input_that_is_not_finite(value: float) -> None:
    x = torch.tensor([1.0, value], dtype=torch.float64, requires_grad=True)
    with pytest.raises(ExternalError, match=r"'x'\[1\] is NaN or infinite, so there is no step from it"):
        gs.wrap(lambda x: x**2)(x)[0].backward()


def test_a_corner_is_said_to_be_one() -> None:
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(gs.PoorGradientError, match="at a corner or a jump"):
        gs.wrap(np.abs)(x).sum().backward()


def test_nothing_to_measure_and_no_rows() -> None:
    with pytest.raises(ExternalError, match="no gradient of sin to measure"):
        gs.wrap(np.sin).quality(torch.tensor([1, 2]))
    with pytest.raises(ExternalError, match="got no rows"):
        gs.wrap(lambda x: x.sum(), batched="rows")(torch.zeros(0, 3, dtype=torch.float64))


def test_a_function_that_raises_in_forward_keeps_its_own_exception() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gs.wrap(broken)(_x())


def test_a_function_that_writes_into_its_input() -> None:
    def writes(x: Any) -> Any:
        x *= 2
        return x**2

    x = _x()
    before = x.detach().clone()
    with pytest.warns(UserWarning, match="writes into its argument 'x'"):
        gs.wrap(writes)(x).sum().backward()
    torch.testing.assert_close(x.detach(), before)
    torch.testing.assert_close(x.grad, 8 * before)


def test_a_function_that_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def talks(x: Any) -> Any:
        print("working")
        return np.abs(x)

    with pytest.warns(UserWarning, match="prints while it is evaluated"):
        gs.wrap(talks)(_x()).sum().backward()
    assert capsys.readouterr().out == "working\n"


def test_a_function_that_keeps_state() -> None:
    calls = [0]

    def drifts(x: Any) -> Any:
        calls[0] += 1
        return x * 2 + 1e-3 * calls[0]

    with pytest.raises(ExternalError, match=r"keeps state.*drifts"):
        gs.wrap(drifts)(_x()).sum().backward()
    start = np.linspace(0.5, 1.5, 3)
    last = [start]

    def remembers(x: Any) -> Any:
        if np.array_equal(np.real(x), start):
            return last[0] * 2.0
        last[0] = np.real(x).copy()
        return np.real(x) * 2.0

    with pytest.raises(ExternalError, match=r"keeps state.*calls at other inputs"):
        gs.wrap(remembers)(_x()).sum().backward()


def test_noise_is_poor_unless_accepted_and_the_error_is_stated() -> None:
    rng = np.random.default_rng(0)
    noisy = gs.wrap(lambda x: np.sin(np.abs(x)) + 1e-2 * rng.standard_normal(x.shape))
    with pytest.raises(gs.PoorGradientError, match="accept_error"):
        noisy(_x()).sum().backward()
    accepted = gs.wrap(lambda x: np.sin(np.abs(x)) + 1e-2 * rng.standard_normal(x.shape), accept_error=True)
    x = _x()
    accepted(x).sum().backward()
    assert x.grad is not None and accepted.statement is not None
    off = float((x.grad - x.cos().detach()).norm() / x.cos().detach().norm())
    assert off < accepted.statement.error
    assert any("random numbers" in note for note in accepted.statement.notes)


def test_a_jacobian_of_the_wrong_shape() -> None:
    matrix = np.ones((2, 3))
    with pytest.raises(ExternalError, match=r"returned shape \(3, 2\) for 'x', expected \(2, 3\).*transposed"):
        gs.wrap(lambda x: matrix @ x, jacobian=lambda x: matrix.T)(_x())
    with pytest.raises(ExternalError, match="returned 3 gradients for 2 tensors"):
        gs.wrap(lambda x, y: x + y, vjp=lambda g, x, y: (x, x, x))(_x(), _x())


def test_rows_that_are_not_independent() -> None:
    with pytest.raises(ExternalError, match="changing row 0 of its inputs changed row 1"):
        gs.wrap(lambda x: np.cumsum(x, axis=0), batched=True)(_x().reshape(3, 1)).sum().backward()
    with pytest.raises(ExternalError, match="no common number of rows"):
        gs.wrap(lambda x, y: x * y, batched=True)(_x(3), _x(1)).sum().backward()
    with pytest.raises(ExternalError, match="one row of output per row of input"):
        gs.wrap(lambda x: x.sum(), batched=True)(_x()).sum().backward()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "centrall"}, "no method is called 'centrall'"),
        ({"vjp": abs, "jvp": abs}, "pass one of them"),
        ({"batched": "row"}, "batched is 'row'"),
        ({"workers": 0}, "at least 1"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExternalError, match=sentence):
        gs.wrap(np.sin, **options)


def test_what_is_no_function_and_what_is_wrapped_already() -> None:
    with pytest.raises(ExternalError, match="needs a function of arrays"):
        gs.wrap(3)  # type: ignore[arg-type]
    with pytest.raises(ExternalError, match="wrapped already"):
        gs.wrap(gs.wrap(np.sin))


def test_a_complex_input_that_needs_a_gradient() -> None:
    with pytest.raises(ExternalError, match="Pass real and imaginary part"):
        gs.wrap(np.abs)(torch.ones(2, dtype=torch.complex128, requires_grad=True))


def test_a_function_that_is_not_analytic_refuses_the_complex_step() -> None:
    with pytest.raises(gs.PoorGradientError, match="not analytic"):
        gs.wrap(lambda x: np.abs(x) ** 2, method="complex-step")(_x()).sum().backward()
