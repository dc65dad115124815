"""Other ways to compute the same, measured on the same inputs in turns with the subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradsmith.lab.lab import same
from gradsmith.lab.measure.oracle import plain_forward
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import interleaved, ratio
from gradsmith.profiling.recorder import record
from gradsmith.profiling.result import Plain, Remedy

# Measured on torch 2.13: an RNN unrolled over 256 steps compiles in 38 s. The limit itself is a choice.
_MOST_OPS = 400


def against_autograd(bench: Bench, reference: Callable[..., Any] | None, budget: float) -> Plain | None:
    """How many times slower the Function is than its own forward under autograd; None where it is not, or has none."""
    function = _composition(bench, reference)
    if function is None:
        return None
    other = bench.with_function(function)
    try:
        if not equivalent(bench, other):
            return None
        mine, theirs = interleaved([bench, other], budget)
        slower = ratio(mine.work, theirs.work)
        if not slower.low > 1 or not mine.backward or not theirs.backward:
            return None
        recording = record(other)
    except Exception:  # forward is opaque to autograd: there is no plain composition to compare with
        return None
    if recording.stopped:
        return None
    ops = recording.count("forward") + recording.count("backward")
    written = recording.written("forward") + recording.written("backward")
    return Plain(slower, recording.saved_bytes, ops, written)


def tried(
    bench: Bench, reference: Callable[..., Any] | None, budget: float, ops: int, say: Callable[[str], None]
) -> list[Remedy]:
    """Every remedy that applies, run and measured; one that fails says why."""
    from gradsmith.profiling.layers import engine_ways, layer_remedies, scan_ways

    ways: list[tuple[str, Callable[..., Any]]] = []
    function = _composition(bench, reference)
    if function is not None:
        ways.append(("reference" if reference else "the plain composition under autograd", function))
    base = function if function is not None else bench.target.call
    found: list[Remedy] = []
    compiled = f"torch.compile of {'it' if function is not None else 'the subject'}"
    if ops <= _MOST_OPS:
        ways.append((compiled, _compiled(base)))
    else:
        found.append(Remedy(compiled, note=f"not tried: unrolling {ops} operations takes the compiler minutes"))
    ways += layer_remedies(bench)
    ways += engine_ways(bench)
    ways += scan_ways(bench)
    for name, way in ways:
        say(f"trying {name}")
        found.append(_measured(bench, name, way, budget / len(ways)))
    return found


def equivalent(bench: Bench, other: Bench) -> bool:
    """Same outputs and same gradients, up to the rounding of the dtype."""
    a, b = bench.call(), other.call()
    a.forward()
    b.forward()
    a.between()
    b.between()
    if len(a.outputs) != len(b.outputs) or any(x.shape != y.shape for x, y in zip(a.outputs, b.outputs)):
        return False
    pairs: list[tuple[Tensor | None, Tensor | None]] = list(zip(a.outputs, b.outputs))
    if a.has_backward and b.has_backward:
        b.grad_outputs = [g.clone() if g is not None else None for g in a.grad_outputs]
        pairs += list(zip(a.backward(), b.backward()))
    return all(same(x, y, rtol=1e-3) for x, y in pairs)


def _measured(bench: Bench, name: str, way: Callable[..., Any], budget: float) -> Remedy:
    other = bench.with_function(way)
    try:
        if not equivalent(bench, other):
            return Remedy(name, note="gives other results; not comparable")
        mine, theirs = interleaved([bench, other], budget)
        watched = None if name.startswith("torch.compile") else record(other)
    except Exception as error:  # a remedy that does not run is no remedy; say why in one line
        text = str(error).strip().splitlines()
        return Remedy(name, note=f"does not run: {type(error).__name__}: {text[0] if text else ''}"[:160])
    return Remedy(name, ratio(mine.work, theirs.work), watched.saved_bytes if watched else None)


def _composition(bench: Bench, reference: Callable[..., Any] | None) -> Callable[..., Any] | None:
    return reference or plain_forward(bench.target)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(function)
    return compiled
