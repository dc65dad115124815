"""One linear solve: direct where the matrix is small, matrix-free where it is large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.external.errors import SingularSystem

Apply = Callable[[Tensor], Tensor]
DIRECT_UP_TO = 1000  # a matrix of 8 MB: made and solved in less time than an iteration needs to converge
_RESTART = 40


@dataclass(frozen=True)
class Solved:
    """The solution, how it was found, and the relative residual that is left."""

    x: Tensor
    how: str
    residual: float


def solve(apply: Apply, b: Tensor, *, symmetric: bool, how: str, tolerance: float, name: str) -> Solved:
    """x with apply(x) = b. `how` is "direct", "gmres", "cg" or "auto"."""
    if how == "auto":
        how = "direct" if b.numel() <= DIRECT_UP_TO else "cg" if symmetric else "gmres"
    if float(b.norm()) == 0:
        return Solved(torch.zeros_like(b), how, 0.0)
    if how == "direct":
        return _direct(apply, b, name)
    x = _cg(apply, b, tolerance) if how == "cg" else _gmres(apply, b, tolerance)
    left = float((apply(x) - b).norm() / b.norm()) if bool(x.isfinite().all()) else float("inf")
    if left > 100 * tolerance and how == "cg":  # not definite after all
        x = _gmres(apply, b, tolerance)
        left, how = float((apply(x) - b).norm() / b.norm()), "gmres"
    if not left <= 100 * tolerance:
        raise SingularSystem(
            f"the backward pass of {name} did not converge: {how} left {left:.1g} of the right-hand side after {b.numel()} unknowns' "
            "worth of iterations. The system is singular or badly scaled; rescale the residual, or use linear='direct'."
        )
    return Solved(x, how, left)


def _direct(apply: Apply, b: Tensor, name: str) -> Solved:
    n = b.numel()
    unit = torch.eye(n, dtype=b.dtype, device=b.device)
    matrix = torch.stack([apply(row) for row in unit], dim=1)
    if not bool(matrix.isfinite().all()):
        raise SingularSystem(f"the derivative of the residual of {name} is NaN or infinite at the solution.")
    factors, pivots, _ = torch.linalg.lu_factor_ex(matrix)
    condition = _condition(matrix, factors, pivots)
    if not condition < 0.1 / torch.finfo(b.dtype).eps:
        raise SingularSystem(
            f"the system of the backward pass of {name} is singular (condition number {condition:.1g}): the solution is not unique, or "
            "does not move smoothly with its inputs. Check that residual has as many independent equations as unknowns."
        )
    x = torch.linalg.lu_solve(factors, pivots, b[:, None])[:, 0]
    return Solved(x, "direct", float((matrix @ x - b).norm() / b.norm()))


def _condition(matrix: Tensor, factors: Tensor, pivots: Tensor) -> float:
    """An estimate of the condition number from the factors that are there: one random vector in, inverse out."""
    if float(factors.diagonal().abs().min()) == 0:
        return float("inf")
    generator = torch.Generator(device="cpu").manual_seed(0)
    probe = torch.randn(matrix.shape[0], 4, generator=generator, dtype=torch.float64).to(matrix)
    back = torch.linalg.lu_solve(factors, pivots, probe)
    again = torch.linalg.lu_solve(factors, pivots, back, adjoint=True)
    largest = float((again.norm(dim=0) / back.norm(dim=0)).max())
    return float(torch.linalg.matrix_norm(matrix)) * largest


def _cg(apply: Apply, b: Tensor, tolerance: float) -> Tensor:
    x, r = torch.zeros_like(b), b.clone()
    p, rr = r.clone(), float(r.dot(r))
    goal = tolerance**2 * rr
    for _ in range(10 * b.numel()):
        q = apply(p)
        curvature = float(p.dot(q))
        if curvature <= 0:
            break
        alpha = rr / curvature
        x, r = x + alpha * p, r - alpha * q
        new = float(r.dot(r))
        if new <= goal:
            break
        p, rr = r + (new / rr) * p, new
    return x


def _gmres(apply: Apply, b: Tensor, tolerance: float) -> Tensor:
    """Restarted GMRES: at most 40 vectors are kept, whatever the size."""
    x, goal = torch.zeros_like(b), tolerance * float(b.norm())
    for _ in range(50):
        r = b - apply(x)
        beta = float(r.norm())
        if not beta > goal:
            break
        basis = [r / beta]
        h = torch.zeros(_RESTART + 1, _RESTART, dtype=b.dtype, device=b.device)
        size = 0
        for k in range(_RESTART):
            w = apply(basis[k])
            for _ in range(2):  # twice: once loses orthogonality
                for j in range(k + 1):
                    part = basis[j].dot(w)
                    h[j, k] += part
                    w = w - part * basis[j]
            h[k + 1, k] = w.norm()
            size = k + 1
            e = torch.zeros(size + 1, dtype=b.dtype, device=b.device)
            e[0] = beta
            y = torch.linalg.lstsq(h[: size + 1, :size], e[:, None]).solution[:, 0]
            left = float((h[: size + 1, :size] @ y - e).norm())
            if left <= goal or float(h[k + 1, k]) <= 1e-14 * beta:
                break
            basis.append(w / h[k + 1, k])
        x = x + sum((y[j] * basis[j] for j in range(size)), torch.zeros_like(b))
    return x
