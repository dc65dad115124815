"""Thirty functions with known derivatives: smooth, noisy, stiff and of mixed scales, their inputs drawn by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.special

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A function of one array, the gradient of <v, f(x)>, and where it is measured."""

    name: str
    kind: str
    make: Callable[[], Function]
    vjp: Callable[[Any, Any], Any]
    x: Any
    analytic: bool = False

    def fresh(self) -> Function:
        """A new function: noise starts from its seed again."""
        return self.make()


@cache
def cases(seed: int = 0) -> tuple[Case, ...]:
    """The thirty, at inputs drawn with this seed."""
    rng = np.random.default_rng(seed)

    def x(n: int, low: float = 0.5, high: float = 1.5) -> Any:
        return rng.uniform(low, high, n)

    def elementwise(
        name: str, f: Function, slope: Function, at: Any, kind: str = "smooth", analytic: bool = True
    ) -> Case:
        return Case(name, kind, lambda: f, lambda z, v: v * slope(z), at, analytic)

    a, w = rng.standard_normal((4, 5)), rng.standard_normal((6, 6)) / 2
    scales = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
    wide = scales * rng.uniform(0.5, 1.5, 5)
    found = [
        elementwise("sin", np.sin, np.cos, x(6)),
        elementwise("exp", np.exp, np.exp, x(6, -2, 2)),
        elementwise("log", np.log, lambda z: 1 / z, x(6)),
        elementwise("tanh", np.tanh, lambda z: 1 / np.cosh(z) ** 2, x(6, -2, 2)),
        elementwise("rational", lambda z: 1 / (1 + z * z), lambda z: -2 * z / (1 + z * z) ** 2, x(6)),
        elementwise("power 7.5", lambda z: z**7.5, lambda z: 7.5 * z**6.5, x(6)),
        elementwise(
            "gamma",
            scipy.special.gamma,
            lambda z: scipy.special.gamma(np.float64(z)) * scipy.special.digamma(np.float64(z)),
            x(6, 1, 4),
            analytic=False,
        ),
        elementwise("bessel", scipy.special.j0, lambda z: -scipy.special.j1(np.float64(z)), x(6, 1, 5), analytic=False),
        elementwise("abs cubed", lambda z: np.abs(z) ** 3, lambda z: 3 * z * np.abs(z), x(6), analytic=False),
        Case(
            "matrix",
            "smooth",
            lambda: lambda z: np.tanh(a @ z),
            lambda z, v: a.T @ (v / np.cosh(a @ z) ** 2),
            x(5, -1, 1),
            True,
        ),
        Case(
            "two layers",
            "smooth",
            lambda: lambda z: np.tanh(w @ np.sin(w @ z)),
            lambda z, v: _two_layers(w, z, v),
            x(6, -1, 1),
            True,
        ),
        Case("linear", "smooth", lambda: lambda z: a @ z, lambda z, v: a.T @ v, x(5, -1, 1), True),
        Case(
            "quadratic form", "smooth", lambda: lambda z: z @ w @ z, lambda z, v: v * ((w + w.T) @ z), x(6, -1, 1), True
        ),
        Case(
            "log-sum-exp",
            "smooth",
            lambda: lambda z: np.log(np.exp(z).sum()),
            lambda z, v: v * np.exp(z) / np.exp(z).sum(),
            x(40, -2, 2),
            True,
        ),
        Case("cosines of 100", "smooth", lambda: lambda z: np.cos(z).sum(), lambda z, v: -v * np.sin(z), x(100), True),
        elementwise(
            "float32 inside",
            lambda z: np.sin(np.real(z).astype(np.float32)).astype(np.float64),
            np.cos,
            x(6),
            "noisy",
            False,
        ),
        elementwise("rounded to 1e-7", lambda z: np.round(np.exp(np.real(z)), 7), np.exp, x(6), "noisy", False),
        *(_noisy(level, x(6)) for level in (1e-10, 1e-7, 1e-5, 1e-4)),
        elementwise(
            "jitter 1e-8", lambda z: np.sin(np.abs(z)) + 1e-8 * np.sin(1e9 * np.abs(z)), np.cos, x(6), "noisy", False
        ),
        _euler("stiff ODE", np.array([1.0, 1e2, 1e4, 1e6]), x(4)),
        _logistic("ODE of 8 digits", x(3), 8),
        elementwise(
            "boundary layer",
            lambda z: np.tanh(50 * (z - 1)),
            lambda z: 50 / np.cosh(50 * (z - 1)) ** 2,
            x(6, 0.95, 1.05),
            "stiff",
        ),
        elementwise("fast sine", lambda z: np.sin(2000 * z), lambda z: 2000 * np.cos(2000 * z), x(6), "stiff"),
        elementwise(
            "stiff exp", lambda z: np.exp(-300 * z), lambda z: -300 * np.exp(-300 * z), x(6, 0.001, 0.02), "stiff"
        ),
        Case(
            "squares of scales",
            "mixed",
            lambda: lambda z: np.sin(z / scales) + (z / scales) ** 2,
            lambda z, v: v * (np.cos(z / scales) / scales + 2 * z / scales**2),
            wide,
            True,
        ),
        Case(
            "product of scales",
            "mixed",
            lambda: lambda z: np.log(z).sum() + np.sqrt(z).prod(),
            lambda z, v: v * (1 / z + np.sqrt(z).prod() / 2 / z),
            wide,
            True,
        ),
        Case(
            "steep and flat",
            "mixed",
            lambda: lambda z: np.array([np.sin(100 * z[0]) + z[1] ** 2, 1e-3 * np.exp(z[2])]),
            lambda z, v: np.array([v[0] * 100 * np.cos(100 * z[0]), v[0] * 2 * z[1], v[1] * 1e-3 * np.exp(z[2])]),
            x(3),
        ),
    ]
    assert len(found) == 30
    return tuple(found)


def _two_layers(w: Any, z: Any, v: Any) -> Any:
    inner = w @ z
    return w.T @ (np.cos(inner) * (w.T @ (v / np.cosh(w @ np.sin(inner)) ** 2)))


def _noisy(level: float, at: Any) -> Case:
    def make() -> Function:
        rng = np.random.default_rng(7)
        return lambda z: np.sin(np.abs(z)) + level * rng.standard_normal(z.shape)

    return Case(f"noise {level:g}", "noisy", make, lambda z, v: v * np.cos(z), at)


def _euler(name: str, rates: Any, at: Any, steps: int = 50) -> Case:
    """Backward Euler on y' = -rate * z * y^2, a stiff decay: each step is solved exactly, so its derivative is known."""

    def solve(z: Any) -> Any:
        y = np.ones_like(z)
        for _ in range(steps):
            c = 0.1 * rates * z
            y = (-1 + np.sqrt(1 + 4 * c * y)) / (2 * c)
        return y

    def vjp(z: Any, v: Any) -> Any:
        y, dy = np.ones_like(z), np.zeros_like(z)
        for _ in range(steps):
            c, dc = 0.1 * rates * z, 0.1 * rates
            new = (-1 + np.sqrt(1 + 4 * c * y)) / (2 * c)
            # c new^2 + new = y
            dy = (dy - dc * new**2) / (2 * c * new + 1)
            y = new
        return v * dy

    return Case(name, "stiff", lambda: solve, vjp, at, True)


def _logistic(name: str, at: Any, digits: int) -> Case:
    """The logistic equation by 60 steps of Runge and Kutta, rounded as a file of results would be; its tangent is exact."""

    def rate(y: Any, r: Any, k: Any) -> Any:
        return r * y * (1 - y / k)

    def tangent(y: Any, dy: Any, r: Any, dr: Any, k: Any, dk: Any) -> Any:
        return dr * y * (1 - y / k) + r * dy * (1 - 2 * y / k) + r * y * y / k**2 * dk

    def solve(z: Any) -> Any:
        r, k, y = (float(np.real(p)) for p in z)
        h, out = 0.05, []
        for n in range(60):
            a = rate(y, r, k)
            b = rate(y + h / 2 * a, r, k)
            c = rate(y + h / 2 * b, r, k)
            d = rate(y + h * c, r, k)
            y += h / 6 * (a + 2 * b + 2 * c + d)
            if n % 20 == 19:
                out.append(y)
        return np.round(np.array(out), digits)

    def vjp(z: Any, v: Any) -> Any:
        found = []
        for which in range(3):
            r, k, y = z
            dr, dk, dy = (float(which == i) for i in range(3))
            h, out = 0.05, []
            for n in range(60):
                a, da = rate(y, r, k), tangent(y, dy, r, dr, k, dk)
                b, db = rate(y + h / 2 * a, r, k), tangent(y + h / 2 * a, dy + h / 2 * da, r, dr, k, dk)
                c, dc = rate(y + h / 2 * b, r, k), tangent(y + h / 2 * b, dy + h / 2 * db, r, dr, k, dk)
                d, dd = rate(y + h * c, r, k), tangent(y + h * c, dy + h * dc, r, dr, k, dk)
                y, dy = y + h / 6 * (a + 2 * b + 2 * c + d), dy + h / 6 * (da + 2 * db + 2 * dc + dd)
                if n % 20 == 19:
                    out.append(dy)
            found.append(v @ np.array(out))
        return np.array(found)

    return Case(name, "noisy", lambda: solve, vjp, at)
