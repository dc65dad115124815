"""The derived Function beside the user's forward under autograd: at the example, and at broadcasts and sizes it does not show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

Arguments = dict[str, Any]
DERIVED = "<derived "  # how the path of a derived source begins


def variations(example: Arguments) -> Iterator[tuple[str, Arguments]]:
    """The example with other sizes: every size moved alone and together, one dimension made 1, a dimension gone or more."""
    tensors = {name: v for name, v in example.items() if isinstance(v, Tensor)}
    for size in sorted({s for t in tensors.values() for s in t.shape}):
        for new in (size + 1, 2 * size, 1):
            if new != size:
                yield f"size {size} made {new}", {**example, **{n: _resized(t, size, new) for n, t in tensors.items()}}
    for name, t in tensors.items():
        for dim in range(t.ndim):
            if t.shape[dim] > 1:
                yield f"`{name}` with size 1 in dimension {dim}", {**example, name: t.narrow(dim, 0, 1).clone()}
        if t.ndim:
            yield f"`{name}` with one dimension fewer", {**example, name: t.select(0, 0).clone()}
        yield f"`{name}` with one dimension more", {**example, name: t[None].repeat(2, *[1] * t.ndim)}
        if t.ndim == 0 and t.is_floating_point():
            for size in sorted({o.shape[-1] for o in tensors.values() if o.ndim}):
                steps = 0.1 * torch.arange(size, dtype=t.dtype)
                yield f"`{name}` with {size} elements", {**example, name: t + steps}
    if len(tensors) > 1:
        yield (
            "every tensor with one dimension more",
            {**example, **{n: t[None].repeat(2, *[1] * t.ndim) for n, t in tensors.items()}},
        )
        if all(t.ndim for t in tensors.values()):
            yield (
                "every tensor with one dimension fewer",
                {**example, **{n: t.select(0, 0).clone() for n, t in tensors.items()}},
            )


def other_numbers(example: Arguments, names: Iterable[str]) -> Iterator[tuple[str, Arguments]]:
    """The example with one number at a time changed: another dimension, order or count, another size and sign."""
    for name in names:
        value = example[name]
        others: set[float] = {0, 1, -1, 2, 3, value + 1, value - 1, -value}
        if isinstance(value, float):
            others = {0.0, 1.0, -value, 2.5 * value, 0.3 * value, value + 1.0}
        for other in sorted(others - {value}):
            yield name, {**example, name: other}


def _resized(t: Tensor, old: int, new: int) -> Tensor:
    for dim in range(t.ndim):
        if t.shape[dim] == old:
            if new <= old:
                t = t.narrow(dim, 0, new)
                continue
            index = torch.arange(new) % old
            more = t.index_select(dim, index)
            if t.is_floating_point():  # repeated rows would hide a wrong order
                noise = torch.rand(more.shape, dtype=t.dtype, generator=torch.Generator().manual_seed(0))
                more = torch.where(
                    (torch.arange(new) < old).reshape(-1, *[1] * (t.ndim - dim - 1)), more, more * (1 + 0.1 * noise)
                )
            t = more
    return t.clone()


def compared(
    fn: Callable[..., Any], derived: Callable[..., Any], example: Arguments, wanted: set[str], rtol: float = 1e-6
) -> str:
    """ "same", "wrong", "raises", "refuses" where the derived forward tests and raises itself, or "not judged"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes and values that we have made up
        return _compared(fn, derived, example, wanted, rtol)


def _compared(
    fn: Callable[..., Any], derived: Callable[..., Any], example: Arguments, wanted: set[str], rtol: float
) -> str:
    seed = 3
    try:
        truth = _results(fn, example, wanted, seed)
    except Exception:
        return "not judged"
    try:
        found = _results(derived, example, wanted, seed)
    except Exception as error:
        if any(not bool(torch.isfinite(t).all()) for t in truth):
            return "not judged"
        return "refuses" if isinstance(error, ValueError) and _is_own(error) else "raises"
    if any(not bool(torch.isfinite(t).all()) for t in truth):
        return "not judged"
    return "same" if len(truth) == len(found) and all(_close(a, b, rtol) for a, b in zip(truth, found)) else "wrong"


def without_gradient(fn: Callable[..., Any], example: Arguments, names: set[str]) -> tuple[str, ...]:
    """Those of the inputs `names` that autograd would give a gradient to."""
    floating = [n for n in example if n in names and example[n].is_floating_point()]
    fresh = {
        n: v.detach().clone().requires_grad_(n in floating) if isinstance(v, Tensor) else v for n, v in example.items()
    }
    try:
        out = fn(**fresh)
        live = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.requires_grad]
        grads = torch.autograd.grad([o.sum() for o in live], [fresh[n] for n in floating], allow_unused=True)
    except Exception:  # of the user's forward, with gradients that it did not expect: then it has none here
        return ()
    return tuple(n for n, g in zip(floating, grads) if g is not None)


def kept_by_autograd(fn: Callable[..., Any], example: Arguments, wanted: set[str]) -> int:
    """The bytes of every storage that autograd keeps for backward of the user's forward."""
    found: dict[int, int] = {}
    alive = []

    def pack(tensor: Tensor) -> Tensor:
        alive.append(tensor)
        found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    fresh = {
        n: v.detach().clone().requires_grad_(n in wanted) if isinstance(v, Tensor) else v for n, v in example.items()
    }
    state = torch.get_rng_state()
    try:
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            fn(**{n: v.view_as(v) if isinstance(v, Tensor) else v for n, v in fresh.items()})
    except Exception:  # of the user's forward; the comparison will tell
        return 1 << 60
    finally:
        torch.set_rng_state(state)
    return sum(found.values())


def _is_own(error: BaseException) -> bool:
    """Was it raised in the text that was derived, and not in something that this calls?"""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(DERIVED)


def single_agrees(fn: Callable[..., Any], derived: Callable[..., Any], example: Arguments, wanted: set[str]) -> bool:
    """In float32: the same dtypes, and as near to the float64 result as autograd itself comes, within a factor of ten."""
    single = {n: v.float() if isinstance(v, Tensor) and v.is_floating_point() else v for n, v in example.items()}
    try:
        exact, truth = _results(fn, example, wanted, 3), _results(fn, single, wanted, 3)
        found = _results(derived, single, wanted, 3)
    except Exception:
        return compared(fn, derived, single, wanted, rtol=2e-3) != "wrong"
    if any(not bool(torch.isfinite(t).all()) for t in truth):
        return True
    if len(truth) != len(found) or any(a.dtype != b.dtype or a.shape != b.shape for a, b in zip(truth, found)):
        return False
    return all(_close(a, b, 2e-3) or _gap(e, b) <= 10 * _gap(e, a) for e, a, b in zip(exact, truth, found))


def second_agrees(fn: Callable[..., Any], derived: Callable[..., Any], example: Arguments, wanted: set[str]) -> bool:
    """Are second derivatives finite, and those of `fn` under autograd? Where autograd has none, there is nothing to compare."""
    try:
        found = _second(derived, example, wanted)
    except Exception:  # of torch: there is a part that cannot be differentiated again
        return False
    if any(not bool(torch.isfinite(t).all()) for t in found):
        return False
    try:
        truth = _second(fn, example, wanted)
    except Exception:
        return True
    if any(not bool(torch.isfinite(t).all()) for t in truth):
        return True
    return all(_close(a, b, 1e-5) for a, b in zip(truth, found))


def _second(fn: Callable[..., Any], example: Arguments, wanted: set[str]) -> list[Tensor]:
    """Derivatives of the gradients: by the inputs and by the gradients of the outputs."""
    fresh = {n: v.detach().clone() if isinstance(v, Tensor) else v for n, v in example.items()}
    leaves = [v.requires_grad_() for n, v in fresh.items() if n in wanted and isinstance(v, Tensor)]
    torch.manual_seed(3)
    out = fn(**{n: v.view_as(v) if isinstance(v, Tensor) else v for n, v in fresh.items()})
    live = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.requires_grad]
    generator = torch.Generator().manual_seed(3)
    draw = lambda t: torch.randn(t.shape, dtype=torch.float64, generator=generator).to(t.dtype)  # noqa: E731
    vs = [draw(o).requires_grad_() for o in live]
    weights = [draw(leaf) for leaf in leaves]
    grads = torch.autograd.grad(live, leaves, vs, create_graph=True, allow_unused=True)
    total = sum((g * w).sum() for g, w in zip(grads, weights) if g is not None)
    if not isinstance(total, Tensor) or not total.requires_grad:
        return []
    found = torch.autograd.grad(total, [*leaves, *vs], allow_unused=True)
    return [torch.zeros_like(t) if g is None else g.detach() for g, t in zip(found, [*leaves, *vs])]


def _gap(exact: Tensor, found: Tensor) -> float:
    return float((exact.double() - found.double()).abs().max()) if exact.numel() else 0.0


def _results(fn: Callable[..., Any], example: Arguments, wanted: set[str], seed: int) -> list[Tensor]:
    """Outputs and gradients for a fixed random gradient of the outputs."""
    fresh = {n: v.detach().clone() if isinstance(v, Tensor) else v for n, v in example.items()}
    leaves = [v.requires_grad_() for n, v in fresh.items() if n in wanted and isinstance(v, Tensor)]
    torch.manual_seed(seed)
    out = fn(**{n: v.view_as(v) if isinstance(v, Tensor) else v for n, v in fresh.items()})
    outputs = list(out) if isinstance(out, (tuple, list)) else [out]
    live = [o for o in outputs if o.requires_grad]
    generator = torch.Generator().manual_seed(seed)
    vs = [torch.randn(o.shape, dtype=torch.float64, generator=generator).to(o.dtype) for o in live]
    grads = torch.autograd.grad(live, leaves, vs, allow_unused=True) if live else [None] * len(leaves)
    filled = [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(grads, leaves)]
    # Read here: one whose memory the user's code freed is an error of this run, not of the comparison.
    return [t.detach().clone() for t in (*outputs, *filled)]


def _close(a: Tensor, b: Tensor, rtol: float) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    scale = float(a.abs().max()) if a.numel() else 0.0
    return bool(torch.allclose(a, b, rtol=rtol, atol=rtol * max(scale, 1e-6), equal_nan=True))
