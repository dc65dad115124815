"""The same call again: does it give the same, other random numbers, or the traces of earlier calls?"""

from __future__ import annotations

import numpy as np
import torch

from gradsmith.external.errors import ExternalError
from gradsmith.external.field import Block, Field
from gradsmith.external.foreign import AnyArray, Failure
from gradsmith.lab.measure.differences import eps_of

_TIMES = 6


def state_or_noise(of: Field) -> list[str]:
    """A note where the function draws random numbers; an error where it keeps state: differences would measure that."""
    first = _numbers(of, of.outputs)
    again = [_again(of), _again(of)]
    if all(np.array_equal(first, a, equal_nan=True) for a in again):
        if of.run.threaded:
            _in_threads(of)
        return []
    series = np.array([first, *again, *(_again(of) for _ in range(_TIMES - 2))])
    moving = np.abs(np.diff(series, axis=0)).max(axis=0) > 0
    steps = np.diff(series[:, moving], axis=0)
    # Random numbers go up and down: seven in order are an accident of 1 in 2,500.
    if ((steps > 0).all(axis=0) | (steps < 0).all(axis=0)).any():
        raise ExternalError(
            f"{of.foreign.name} keeps state: called again with the same inputs, its result drifts (from {series[0, moving][0]:.6g} to "
            f"{series[-1, moving][0]:.6g} in {_TIMES + 1} calls). Differences would measure the drift. Reset the state at the start of every call."
        )
    sentence = (
        f"{of.foreign.name} draws random numbers: the same inputs gave different outputs. Use the same seed in every call, if you can; "
        "then differences do not see the noise"
    )
    return [sentence]


def still_the_same(of: Field) -> None:
    """An error where calls at other inputs have changed the result at these."""
    first, now = _numbers(of, of.outputs), _again(of)
    if np.array_equal(first, now, equal_nan=True):
        return
    if np.array_equal(now, _again(of), equal_nan=True):
        raise ExternalError(
            f"{of.foreign.name} keeps state: after calls at other inputs, the same inputs give a different result (now {now.flat[0]:.6g}, "
            f"before {first.flat[0]:.6g}). Start every call afresh, for example without a warm start."
        )


def _in_threads(of: Field) -> None:
    """An error where calls from several threads at once give what a single one does not."""
    alone = of.foreign.fn
    args = of.call.arguments(
        [a.copy() for a in of._row(of.arrays, 0)] if of.layout.by_row else [a.copy() for a in of.arrays]
    )
    value = of.foreign.read(
        of.call, of._row(of.arrays, 0) if of.layout.by_row else of.arrays, alone(*args[0], **args[1])
    )
    together = of.outputs_at([of.arrays] * 8)
    spread = [t for t in together if isinstance(t, Failure) or not _same(t, value, of)]
    if spread:
        failure = next((f" ({t.text})" for t in spread if isinstance(t, Failure)), "")
        raise ExternalError(
            f"{of.foreign.name} is not thread-safe: {len(spread)} of 8 calls from several threads at once went wrong{failure}. Use workers=N "
            "instead of a ThreadPoolExecutor: its workers are processes."
        )


def _same(outputs: list[AnyArray], value: list[AnyArray], of: Field) -> bool:
    first = [o[0] for o in outputs] if of.layout.by_row else outputs
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, value))


def _again(of: Field) -> AnyArray:
    outputs = of.outputs_at([of.arrays])[0]
    if isinstance(outputs, Failure):
        raise ExternalError(
            f"{of.foreign.name} keeps state: called again with the same inputs, it raises {outputs.text}. Start every call afresh."
        )
    return _numbers(of, outputs)


def _numbers(of: Field, outputs: list[AnyArray]) -> AnyArray:
    return np.concatenate(
        [np.ravel(o).astype(np.float64) for o, w in zip(outputs, of.v) if w is not None and o.dtype.kind != "c"]
        or [np.zeros(1)]
    )


def precision(of: Field, block: Block) -> float:
    """The precision of the outputs: a function may compute in float32, whatever it is given. Then its values lie on a grid.

    Asked a generic step away from x, where no float64 function returns round numbers by accident.
    """
    point = list(of.arrays)
    for k, (begin, end) in zip(block.positions, block.spans):
        moved = block.x[:, begin:end] + block.scale()[:, begin:end] * np.pi / 4096
        point[k] = moved.reshape(of.arrays[k].shape).astype(of.arrays[k].dtype)
    outputs = of.outputs_at([point])[0]
    least = float(np.finfo(np.float64).eps)
    if isinstance(outputs, Failure):
        return least
    values = [
        torch.from_numpy(np.asarray(o, dtype=np.float64))
        for o, w in zip(outputs, of.v)
        if w is not None and o.dtype.kind == "f"
    ]
    return eps_of(values, least) if values else least


def rows_apart(of: Field) -> None:
    """An error where `batched=True` was said of a function in which one row moves another."""
    if not of.layout.batched or of.rows < 2:
        return
    for out, w in zip(of.outputs, of.v):
        if w is not None and (not out.ndim or out.shape[0] != of.rows):
            raise ExternalError(
                f"{of.foreign.name} is wrapped with batched=True, and returned shape {out.shape} for {of.rows} rows. Return one row of output "
                "per row of input, or leave batched out."
            )
    point = list(of.arrays)
    for block in of.blocks:
        for k in block.positions if block.rows else ():
            point[k] = point[k].copy()
            point[k][0] = point[k][0] * 1.01 + 0.01
    moved = of.outputs_at([point])[0]
    if isinstance(moved, Failure):
        return
    for before, after, w in zip(of.outputs, moved, of.v):
        if w is None:
            continue
        # The last bits may depend on the shape of the batch, never on its values.
        others = np.abs(after[1:] - before[1:]) > 1e-6 * np.abs(before[1:]).max(initial=0.0)
        if others.any():
            raise ExternalError(
                f"{of.foreign.name} is wrapped with batched=True, and changing row 0 of its inputs changed row {int(np.argwhere(others)[0][0]) + 1} "
                "of its outputs. Rows must be independent; leave batched out."
            )
