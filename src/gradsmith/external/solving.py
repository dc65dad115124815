"""`gs.implicit`: the gradient of what a solver finds, by one linear solve with the derivative of the residual."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor
from torch.utils import _pytree as pytree

from gradsmith.external import ladder
from gradsmith.external.errors import ExternalError, NotConverged, PoorGradientError
from gradsmith.external.linear import solve as linear_solve
from gradsmith.external.stencil import Array
from gradsmith.lab.subject.target import short_name
from gradsmith.native.outside_compile import leave_graph
from gradsmith.nearest import nearest

KINDS = ("root", "fixed-point", "minimum")
LINEAR = ("auto", "direct", "gmres", "cg")
_OFF = 1e-2


def implicit(
    residual: Callable[..., Any],
    solve: Callable[..., Any],
    *,
    kind: str = "root",
    constraints: Callable[..., Tensor] | None = None,
    linear: str = "auto",
    tolerance: float = 1e-4,
    check: bool = True,
) -> Implicit:
    """A callable x(*params) that runs `solve(*params)` and differentiates what it finds.

    `residual(x, *params)` is made of torch operations. What it means depends on `kind`: "root": it is 0 at the solution;
    "fixed-point": it is x there; "minimum": it is the objective, smallest there, under `constraints(x, *params) = 0` if there
    are any. `solve` may be anything: SciPy, a loop, another program. The backward pass is one linear solve: direct up to 1,000
    unknowns, matrix-free beyond. `tolerance` is how far, relative to x, the solver may be from the solution. `check`
    compares the first gradient with solutions at moved parameters.

    >>> import torch
    >>> root = implicit(lambda x, a: x * x - a, lambda a: a.sqrt())
    >>> a = torch.tensor([4.0, 9.0], dtype=torch.float64, requires_grad=True)
    >>> root(a).sum().backward()
    >>> a.grad
    tensor([0.2500, 0.1667], dtype=torch.float64)
    """
    if kind not in KINDS:
        raise ExternalError(f"no kind is called {kind!r}; {nearest(kind, KINDS)}")
    if linear not in LINEAR:
        raise ExternalError(f"no linear solver is called {linear!r}; {nearest(linear, LINEAR)}")
    if constraints is not None and kind != "minimum":
        raise ExternalError("constraints= is for kind='minimum': add the equations of a root to its residual instead.")
    return Implicit(residual, solve, kind, constraints, linear, tolerance, check)


class Implicit:
    """A solver with a gradient. `solves` counts linear solves, `last` says how the last one went."""

    def __init__(
        self,
        residual: Callable[..., Any],
        solve: Callable[..., Any],
        kind: str,
        constraints: Callable[..., Tensor] | None,
        linear: str,
        tolerance: float,
        check: bool,
    ) -> None:
        functools.update_wrapper(self, solve, updated=())
        self.__name__ = short_name(solve) if short_name(solve) != "<lambda>" else "the solver"
        self.residual, self.solver, self.kind, self.constraints = residual, solve, kind, constraints
        self.linear, self.tolerance, self.unchecked = linear, tolerance, check
        self.solves = 0
        self.last = ""
        self.distance = float("nan")

    def __call__(self, *params: Any) -> Tensor:
        if torch._C._are_functorch_transforms_active():
            raise ExternalError(
                f"{self.__name__} does not work under torch.func (grad, vmap, jvp): its solver sees no numbers there. Use backward() or "
                "torch.autograd.grad."
            )
        if torch.compiler.is_compiling():
            return leave_graph("its solver is not traced", _solved, self, params)  # type: ignore[no-any-return]
        return _solved(self, params)

    def solution(self, params: Any) -> Tensor:
        """What the solver returns, as a tensor."""
        with torch.no_grad():
            found = self.solver(*params)
        if isinstance(found, np.ndarray) or np.isscalar(found):
            like = next((p for p in pytree.tree_flatten(params)[0] if isinstance(p, Tensor)), torch.empty(0))
            found = torch.as_tensor(np.array(found), dtype=like.dtype if like.is_floating_point() else None)
        if isinstance(found, Tensor) and not (found.is_floating_point() or found.is_complex()):
            like = next((p for p in pytree.tree_flatten(params)[0] if isinstance(p, Tensor)), found)
            found = found.to(like.dtype if like.is_floating_point() else torch.get_default_dtype())
        if not isinstance(found, Tensor):
            raise ExternalError(
                f"{self.__name__} returned {type(found).__name__}: return the solution as one tensor or array. Several unknowns go into "
                "one vector."
            )
        return found.detach()

    def equations(self, z: Tensor, x: Tensor, params: Any) -> Tensor:
        """What is 0 at the solution. z is x, with the multipliers of the constraints behind it."""
        if self.kind == "root":
            value = self.residual(x, *params)
        elif self.kind == "fixed-point":
            value = x - self.residual(x, *params)
        else:
            value = self._stationary(z, x, params)
        if not isinstance(value, Tensor) or value.numel() != z.numel():
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ExternalError(
                f"residual of {self.__name__} returned {shape} for an unknown of shape {tuple(x.shape)}: it needs one equation per unknown."
            )
        return value.reshape(-1)

    def _stationary(self, z: Tensor, x: Tensor, params: Any) -> Tensor:
        value = self.residual(x, *params)
        if value.numel() != 1:
            raise ExternalError(
                f"residual of {self.__name__} returned shape {tuple(value.shape)}: the objective of a minimum is one number."
            )
        held = self.constraints(x, *params).reshape(-1) if self.constraints is not None else value.new_zeros(0)
        total = value.reshape(()) + (held * z[x.numel() :]).sum()
        (slope,) = torch.autograd.grad(total, x, create_graph=True)
        return torch.cat([slope.reshape(-1), held])

    def unknowns(self, x: Tensor, params: Any) -> Tensor:
        """x as a vector, followed by the multipliers that fit the gradient of the objective best."""
        if self.constraints is None:
            return x.reshape(-1)
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.residual(at, *params).sum(), at)
            held = self.constraints(at, *params).reshape(-1)
            rows = [torch.autograd.grad(c, at, retain_graph=True)[0].reshape(-1) for c in held]
        multipliers = torch.linalg.lstsq(torch.stack(rows, dim=1), -slope.reshape(-1, 1)).solution[:, 0]
        return torch.cat([x.reshape(-1), multipliers])


def _solved(of: Implicit, params: Any) -> Tensor:
    flat, spec = pytree.tree_flatten(params)
    found: Tensor = _Implicit.apply(of, spec, *flat)
    return found


_solved.__name__ = "implicit"


class _Once(torch.autograd.Function):
    """Gradients that must not be differentiated again: it would find nothing to differentiate, and say nothing."""

    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Tensor) -> Any:
        ctx.name = name
        return tuple(t.view_as(t) for t in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise ExternalError(
            f"{ctx.name} can be differentiated once only: its gradient is one linear solve, which is not differentiated. Leave out "
            "create_graph=True."
        )


class _Implicit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, of: Implicit, spec: Any, *flat: Any) -> Tensor:
        tensors = [p for p in flat if isinstance(p, Tensor)]
        x = of.solution(pytree.tree_unflatten([p.detach() if isinstance(p, Tensor) else p for p in flat], spec))
        ctx.save_for_backward(x, *tensors)  # gradsmith: ignore[intermediate-saved]  _Once refuses a second derivative
        ctx.of, ctx.spec, ctx.constants = of, spec, [None if isinstance(p, Tensor) else p for p in flat]
        ctx.places = [k for k, p in enumerate(flat) if isinstance(p, Tensor)]
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        of: Implicit = ctx.of
        if is_legacy_batchedtensor(grad):
            raise ExternalError(
                f"{of.__name__} takes one grad_output at a time: leave out is_grads_batched=True and vectorize=True."
            )
        x, *tensors = ctx.saved_tensors
        wanted = [k for k in ctx.places if ctx.needs_input_grad[2 + k]]
        flat = list(ctx.constants)
        for k, t in zip(ctx.places, tensors):
            flat[k] = t.detach().requires_grad_(k in wanted)
        again = torch.is_grad_enabled()
        with torch.no_grad():
            found = _gradients(of, x, flat, wanted, ctx.spec, grad)
            if of.unchecked:
                of.unchecked = False
                _compare(of, flat, wanted, ctx.spec, grad, found)
        if again:
            parts = _Once.apply(of.__name__, len(found), *found.values(), *tensors, grad)
            found = dict(zip(found, parts))
        return None, None, *(found.get(k) for k in range(len(flat)))


def _gradients(
    of: Implicit, x: Tensor, flat: list[Any], wanted: list[int], spec: Any, grad: Tensor
) -> dict[int, Tensor]:
    params = pytree.tree_unflatten(flat, spec)
    with torch.enable_grad():
        z = of.unknowns(x, params).detach().requires_grad_()
        r = of.equations(z, z[: x.numel()].reshape(x.shape), params)
        _no_captured(of, x, flat, spec)
    if not r.requires_grad:
        raise ExternalError(
            f"residual of {of.__name__} does not depend on x or its parameters through torch operations. Leave out detach(), NumPy and "
            "no_grad in it."
        )
    _converged(of, r, z, x)
    wide = torch.promote_types(z.dtype, torch.float32)  # no linear solver works in 16 bits

    def transposed(vector: Tensor) -> Tensor:
        (got,) = torch.autograd.grad(r, z, vector.to(r.dtype), retain_graph=True, materialize_grads=True)
        return got.to(wide)

    right = torch.zeros_like(z, dtype=wide)
    right[: x.numel()] = grad.reshape(-1)
    symmetric = of.kind == "minimum" and of.constraints is None
    got = linear_solve(
        transposed, right.detach(), symmetric=symmetric, how=of.linear, tolerance=1e-10, name=of.__name__
    )
    of.solves += 1
    of.last = f"{got.how}, {z.numel()} unknowns, residual {got.residual:.1g}"
    parts = torch.autograd.grad(r, [flat[k] for k in wanted], -got.x.to(r.dtype), allow_unused=True)
    return {k: torch.zeros_like(flat[k]) if p is None else p for k, p in zip(wanted, parts)}


def _converged(of: Implicit, r: Tensor, z: Tensor, x: Tensor) -> None:
    """How far x is from the solution, relative to itself: the residual against what a relative move of x makes of it."""
    if not bool(x.isfinite().all()):
        raise NotConverged(
            f"{of.__name__} returned NaN or an infinite value, so there is no solution and no gradient of it."
        )
    tolerance = max(of.tolerance, 4 * torch.finfo(x.dtype).eps)  # nobody can be closer than the dtype of x allows
    generator = torch.Generator().manual_seed(0)
    size = max(float(x.abs().square().mean().sqrt()), torch.finfo(x.dtype).tiny)
    v = torch.randn(r.shape, generator=generator, dtype=torch.float64).to(r)
    # |J^T v| over |v| is the typical gain of the residual over the unknowns.
    (back,) = torch.autograd.grad(r, z, v, retain_graph=True, materialize_grads=True)
    gain = float(back.norm() / v.norm())
    of.distance = float(r.detach().norm() / np.sqrt(r.numel())) / (gain * size) if gain > 0 else float("inf")
    if gain > 0 and not of.distance <= tolerance:
        raise NotConverged(
            f"{of.__name__} had not converged: x is about {of.distance:.1g} of its size away from the solution (tolerance {tolerance:g}), so the "
            "gradient of the solution has no meaning there. Let the solver run longer, or say tolerance=."
        )


def _no_captured(of: Implicit, x: Tensor, flat: list[Any], spec: Any) -> None:
    """An error where the residual depends on a tensor that needs a gradient and is not an argument."""
    if of.kind == "minimum":
        return
    still = pytree.tree_unflatten([p.detach() if isinstance(p, Tensor) else p for p in flat], spec)
    at = x.detach()
    if of.equations(at.reshape(-1), at, still).requires_grad:
        raise ExternalError(
            f"residual of {of.__name__} uses a tensor that requires grad and is not an argument, so it would get no gradient. Pass it: "
            "residual(x, *params), solve(*params)."
        )


def _compare(
    of: Implicit, flat: list[Any], wanted: list[int], spec: Any, grad: Tensor, found: dict[int, Tensor]
) -> None:
    """The gradient against solutions at moved parameters, along one random direction for each parameter."""
    weights = grad.detach().double().numpy().reshape(-1)
    rng = np.random.default_rng(0)
    for k in wanted:
        if not flat[k].is_floating_point() or not flat[k].numel():
            continue
        value = flat[k].detach().double().numpy()
        size = np.abs(value)
        direction = rng.choice([-1.0, 1.0], size=value.shape) * np.where(
            size > 0, size, max(float(size.max(initial=0)), 1.0)
        )

        def phi(moves: Any, k: int = k, value: Any = value) -> Array:
            rows = []
            for move in moves:
                moved = [p.detach() if isinstance(p, Tensor) else p for p in flat]
                moved[k] = torch.from_numpy(np.asarray(value + np.reshape(move, value.shape))).to(flat[k])
                try:
                    x = of.solution(pytree.tree_unflatten(moved, spec))
                except Exception:
                    rows.append([np.nan])
                    continue
                rows.append([float(weights @ x.double().numpy().reshape(-1))])
            return np.array(rows)

        base = phi([np.zeros_like(value)])[0]
        if not np.isfinite(base).all():
            continue
        (slope,) = ladder.slopes(phi, [direction], [1.0], base, np.abs(base), enough=_OFF / 10)
        said = float((found[k].detach().double().numpy() * direction).sum())
        off, scale = abs(said - float(slope.value[0])), max(abs(said), abs(float(slope.value[0])))
        if slope.found and off > _OFF * scale + 3 * float(slope.error[0]):
            raise PoorGradientError(
                f"the gradient of {of.__name__} for argument {k} does not fit the solver: moving it moves the solution by {float(slope.value[0]):.6g}, and "
                f"the residual implies {said:.6g}. The solver converged (distance {of.distance:.1g}), so residual and solve disagree: check that "
                "residual is what solve solves."
            )
