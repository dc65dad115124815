"""Gradients of a limit: what the loops of forward leave undone is no mistake of backward, and what is more is one."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import gradsmith as gs
from gradsmith.lab import Arguments, resolve
from gradsmith.lab.measure.loops import left_undone
from gradsmith.lab.subject.importing import import_file


class Solve(torch.autograd.Function):
    """(A A^T + 1) z = b by steps down the residual, until it is small."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, b: Tensor, tolerance: float) -> Tensor:
        M = A @ A.t() + torch.eye(A.shape[0], dtype=A.dtype, device=A.device)
        z = torch.zeros_like(b)
        for _ in range(5000):
            r = b - M @ z
            if r.norm() < tolerance:
                break
            z = z + r * 0.05
        ctx.save_for_backward(A, z)
        return z

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None]:
        A, z = ctx.saved_tensors
        u = torch.linalg.solve(A @ A.t() + torch.eye(A.shape[0], dtype=A.dtype, device=A.device), grad_output)
        G = -torch.outer(u, z)
        return (G + G.t()) @ A, u, None


class OffByTwoPercent(Solve):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None]:
        grad_A, grad_b, _ = Solve.backward(ctx, grad_output)
        return grad_A, 1.02 * grad_b, None


class HalfForgotten(Solve):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None]:
        A, z = ctx.saved_tensors
        u = torch.linalg.solve(A @ A.t() + torch.eye(A.shape[0], dtype=A.dtype, device=A.device), grad_output)
        return -torch.outer(u, z) @ A, u, None


class Narrow(torch.autograd.Function):
    """A loop over time is not on the way to a limit: digits that backward loses are its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = torch.zeros_like(x[0])
        for row in x.unbind():
            total = total + row.sin()
        ctx.save_for_backward(x)
        return total

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (grad_output.float() * x.float().cos()).double()


def system(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = (torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((4, 4), (4,)))
    A, b = (tensor.requires_grad_() for tensor in made)
    return A, b


@pytest.mark.parametrize("tolerance", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_solver_that_stops_a_little_early_is_right(tolerance: float, seed: int) -> None:
    report = gs.check(Solve, *system(seed), tolerance, level="quick")
    assert report.subjects[0].verdict == "verified"
    assert not [f for f in report.findings if f.rule == "wrong-gradient"]


@pytest.mark.parametrize("function", [OffByTwoPercent, HalfForgotten], ids=lambda f: f.__name__)
def test_what_is_further_off_is_wrong(function: Any) -> None:
    report = gs.check(function, *system(0), 1e-7, level="quick")
    assert report.subjects[0].verdict == "refuted"


def test_the_report_says_how_much_was_left_undone() -> None:
    (note,) = [n for n in gs.check(Solve, *system(0), 1e-7, level="quick").notes if "limit of the loop" in n]
    assert "'A'" in note and "'b'" in note


def test_a_loop_over_time_excuses_nothing() -> None:
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    report = gs.check(Narrow, x, level="quick")
    assert [f.cause for f in report.findings if f.rule in ("wrong-gradient", "gradient-dtype")]


def test_a_solver_in_another_file_of_the_package_is_followed(tmp_path: Path) -> None:
    package = tmp_path / "solvers_of_a_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    solver = """
        def newton(x):
            y = x * 0 + 1
            while True:
                step = (y - x / y) / 4
                y = y - step
                if step.abs().max() < 1e-5:
                    return y
        """
    (package / "iterations.py").write_text(textwrap.dedent(solver))
    function = """
        import torch
        from solvers_of_a_package.iterations import newton

        class Root(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = newton(x)
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, grad_output):
                (y,) = ctx.saved_tensors
                return grad_output / (2 * y)
        """
    (package / "root.py").write_text(textwrap.dedent(function))
    made = import_file(package / "root.py")
    x = torch.tensor([0.5, 2.0, 9.0], dtype=torch.float64, requires_grad=True)
    target = resolve(made.Root)
    assert 0 < left_undone(target, Arguments.of((x,), {}, target.names), 0) < 1e-2
    assert gs.check(made.Root, x, level="quick").subjects[0].verdict == "verified"
