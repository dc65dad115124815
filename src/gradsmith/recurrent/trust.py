"""No plan is used before it has agreed with the user's own step, run as a float64 loop on fresh random inputs.

Two lengths, the real batch size, a state that is not zero, random output gradients; y, the last state and every
gradient are compared element by element. The tolerance is what the same loop in the plan's own dtype loses.

A step that names its dtype (`(v > 0).float()`) cannot run in float64. For it (`own_dtype`) the loop in the plan's own dtype is
the truth, and the tolerance is how far it moves when its arguments move by a rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsmith.native.refused import Refused

LENGTHS = (2, 5)
_ATTEMPTS = 3
Run = Callable[[list[Tensor], list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]


@dataclass
class Sample:
    """Random arguments of one call, in the plan's dtype."""

    x: list[Tensor]
    state: list[Tensor]
    params: list[Tensor]


def check(
    engine: Run, loop: Run, x: Sequence[Tensor], state: Sequence[Tensor], params: Sequence[Tensor], dtype: torch.dtype,
    wants: Sequence[bool], names: Sequence[str], rows: int | None = None, own_dtype: bool = False,
) -> None:  # fmt: skip
    """Raise Refused unless `engine` agrees with `loop`. `wants` and `names` are those of x, state and params in order.

    With `rows`, both take so many rows of x, of sequences of different lengths, in the place of time and batch.
    """
    generator = torch.Generator().manual_seed(20_113)
    for steps in LENGTHS if rows is None else (rows,):
        for attempt in range(_ATTEMPTS):
            shapes = [(steps, *leaf.shape[1 if rows is None else 2 :]) for leaf in x]
            sample = _sample(x, state, params, shapes, dtype, generator, perturb=attempt < 2)
            seed = generator.initial_seed() + steps
            same = wide = _differentiate(loop, sample, wants, seed)
            if own_dtype:
                same = _differentiate(loop, _nudged(sample, dtype, generator), wants, seed)
            elif dtype is not torch.float64:
                wide = _differentiate(loop, _cast(sample, torch.float64), wants, seed)
            # Some gradients are zero but for rounding (a bias before a softmax): judged by the size of the others.
            size = max((_size(t) for t in wide), default=0.0)
            if all(_reliable(a, b, dtype, size) for a, b in zip(same, wide)):
                break
        else:
            raise Refused("the self-check found no inputs on which the step itself is finite and repeatable")
        ours = _differentiate(engine, sample, wants, seed)
        labels = [*_result_names(len(ours), wants, names)]
        for label, got, rounded, exact in zip(labels, ours, same, wide):
            _compare(label, got, rounded, exact, dtype, size)


def _result_names(count: int, wants: Sequence[bool], names: Sequence[str]) -> list[str]:
    gradients = [f"the gradient of {name}" for name, want in zip(names, wants) if want]
    return [f"output {i}" for i in range(count - len(gradients))] + gradients


def _sample(
    x: Sequence[Tensor], state: Sequence[Tensor], params: Sequence[Tensor], shapes: Sequence[tuple[int, ...]], dtype: torch.dtype,
    generator: torch.Generator, perturb: bool,
) -> Sample:  # fmt: skip
    def draw(shape: Sequence[int]) -> Tensor:
        return torch.randn(tuple(shape), generator=generator, dtype=torch.float64).to(dtype)

    def fresh(leaf: Tensor, shape: Sequence[int]) -> Tensor:
        if leaf.dtype.is_floating_point:
            return draw(shape)
        if leaf.dtype is torch.bool:
            return torch.rand(tuple(shape), generator=generator) < 0.7
        # Whole numbers may be indices: only values that occur in the data are known to be valid.
        flat = leaf.detach().reshape(-1)
        return flat[torch.randint(0, flat.numel(), tuple(shape), generator=generator)]

    def near(leaf: Tensor) -> Tensor:
        if not leaf.dtype.is_floating_point:
            return leaf.detach()
        value = leaf.detach().to(dtype)
        if not perturb or not value.numel():
            return value.clone()
        # Parameters start as zeros and ones more often than not; equal values would hide a swapped operand.
        spread = 0.2 * max(float(value.double().square().mean().sqrt()), 0.1)
        return value + spread * draw(value.shape)

    return Sample(
        [fresh(leaf, shape) for leaf, shape in zip(x, shapes)],
        [fresh(leaf, leaf.shape) for leaf in state],
        [near(leaf) for leaf in params],
    )


def _cast(sample: Sample, dtype: torch.dtype) -> Sample:
    def cast(leaves: list[Tensor]) -> list[Tensor]:
        return [leaf.to(dtype) if leaf.dtype.is_floating_point else leaf for leaf in leaves]

    return Sample(cast(sample.x), cast(sample.state), cast(sample.params))


def _nudged(sample: Sample, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    """The same arguments, each element moved by about one rounding."""

    def nudge(leaves: list[Tensor]) -> list[Tensor]:
        return [leaf + torch.finfo(dtype).eps * leaf * torch.randn(leaf.shape, generator=generator).to(dtype)
                if leaf.dtype.is_floating_point else leaf for leaf in leaves]  # fmt: skip

    return Sample(nudge(sample.x), nudge(sample.state), nudge(sample.params))


def _differentiate(run: Run, sample: Sample, wants: Sequence[bool], seed: int) -> list[Tensor]:
    """Outputs, then gradients of everything that wants one, for output gradients that depend on `seed` only."""
    leaves = [*sample.x, *sample.state, *sample.params]
    leaves = [leaf.detach().requires_grad_(want) for leaf, want in zip(leaves, wants)]
    n_x, n_state = len(sample.x), len(sample.state)
    with torch.set_grad_enabled(any(wants)):
        y, last = run(leaves[:n_x], leaves[n_x : n_x + n_state], leaves[n_x + n_state :])
    outputs = [*y, *last]
    sources = [leaf for leaf in leaves if leaf.requires_grad]
    results = [out.detach() for out in outputs]
    if not sources:
        return results
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(out.shape, generator=generator, dtype=torch.float64) for out in outputs]
    pairs = [(out, weight.to(out.dtype)) for out, weight in zip(outputs, weights) if out.requires_grad]
    if not pairs:
        return [*results, *(torch.zeros_like(leaf) for leaf in sources)]
    found = torch.autograd.grad([o for o, _ in pairs], sources, [w for _, w in pairs], allow_unused=True)
    return [*results, *(torch.zeros_like(leaf) if g is None else g for leaf, g in zip(sources, found))]


def _size(tensor: Tensor) -> float:
    if not tensor.numel() or not tensor.dtype.is_floating_point:
        return 0.0
    return float(tensor.double().square().mean().sqrt())


def _reliable(rounded: Tensor, exact: Tensor, dtype: torch.dtype, overall: float) -> bool:
    """The loop itself must be finite, and must not hang on its rounding (a spike that one dtype fires, the other not)."""
    if not exact.dtype.is_floating_point:
        return bool((rounded == exact).all())
    if not bool(torch.isfinite(exact).all()) or not bool(torch.isfinite(rounded).all()):
        return False
    scale = float(exact.abs().max()) if exact.numel() else 0.0
    error = float((rounded.double() - exact.double()).abs().max()) if exact.numel() else 0.0
    return error <= 3e-3 * scale + 1e-5 * overall if dtype is torch.float32 else True


def _compare(label: str, got: Tensor, rounded: Tensor, exact: Tensor, dtype: torch.dtype, overall: float) -> None:
    if got.shape != exact.shape:
        raise Refused(
            f"the self-check failed: {label} has shape {tuple(got.shape)}, the loop gives {tuple(exact.shape)}"
        )
    if not exact.numel():
        return
    if not exact.dtype.is_floating_point:
        if not bool((got == exact).all()):
            raise Refused(f"the self-check failed: {label} differs from the loop")
        return
    exact = exact.double()
    noise = float((rounded.double() - exact).abs().max())
    allowed = 8 * noise + torch.finfo(dtype).eps * (200 * _size(exact) + 4 * overall)
    off = (got.double() - exact).abs()
    worst = float(off.max())
    if not worst <= allowed:  # also catches NaN
        raise Refused(f"the self-check failed: {label} is off by {worst:.2e}, the loop in {dtype} by {noise:.2e}")
