"""Recorded calls as readable JSON, written only when asked for. Shapes and statistics, never pickled objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradsmith.findings import GradsmithError, jsonable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gradsmith.recording.call import Call
    from gradsmith.recording.tape import Tape

SCHEMA = 1
_LISTED = 64  # elements; larger tensors are described, not listed


def write(tape: Tape, path: Path) -> None:
    """The tape as JSON, for `gradsmith check --recorded`."""
    from gradsmith import __version__

    calls = [_described(call) for call in tape.calls]
    text = json.dumps({"schema": SCHEMA, "gradsmith": __version__, "calls": calls}, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise GradsmithError(f"cannot write {path}: {error.strerror}") from None


def read(path: Path) -> list[dict[str, Any]]:
    """The calls in a recorded file; one sentence for whatever is wrong with it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GradsmithError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise GradsmithError(f"{path} is not a recorded file: it is no JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("calls"), list):
        raise GradsmithError(f"{path} is not a recorded file; write one with: gradsmith record --save FILE train.py")
    if data.get("schema") != SCHEMA:
        raise GradsmithError(
            f"{path} was recorded by gradsmith {data.get('gradsmith', '?')} (format {data.get('schema')}), which this "
            f"version does not read (format {SCHEMA}); record it again"
        )
    return list(data["calls"])


def examples_in(path: Path, name: str, seed: int = 0) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Inputs for the Function called `name`, drawn as the file describes them; calls with live objects are left out."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    found: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for call in read(path):
        described = call.get("function", "")
        if described != name and described.rpartition(".")[2] != name:
            continue
        try:
            args = tuple(_value(a, generator) for a in call["args"])
        except (LookupError, TypeError, ValueError, RuntimeError):
            continue
        if args and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args):
            found.append((args, {}))
    return found


def _described(call: Call) -> dict[str, Any]:
    from gradsmith.lab.target import short_name

    args = call.examples[0] if call.examples else ()
    return {
        "function": short_name(call.cls),
        "module": call.cls.__module__,
        "count": call.count,
        "lines": dict(call.lines),
        "scaled": call.scaled,
        "args": [_description(a) for a in args],
    }


def _description(value: Any) -> dict[str, Any]:
    import torch

    if not isinstance(value, torch.Tensor):
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [_description(v) for v in value]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"value": jsonable(value)}
        return {"object": type(value).__qualname__}
    plain = value.detach()
    out: dict[str, Any] = {
        "tensor": list(plain.shape),
        "stride": list(plain.stride()),
        "dtype": str(plain.dtype).removeprefix("torch."),
        "device": str(plain.device),
        "requires_grad": value.requires_grad,
    }
    if plain.numel() and plain.numel() <= _LISTED:
        wide = plain.to(torch.float64) if plain.is_floating_point() else plain
        out["values"] = jsonable(wide.flatten().tolist()) if not plain.is_complex() else None
    elif plain.numel() and plain.dtype != torch.bool and not plain.is_complex():
        wide = plain.to(torch.float64)
        out |= {"min": jsonable(wide.min().item()), "max": jsonable(wide.max().item())}
        out |= {"mean": jsonable(wide.mean().item()), "std": jsonable(wide.std(correction=0).item())}
    return out


def _value(described: Mapping[str, Any], generator: torch.Generator) -> Any:
    if "tensor" in described:
        return _tensor(described, generator)
    for kind in (list, tuple):
        if kind.__name__ in described:
            return kind(_value(v, generator) for v in described[kind.__name__])
    value = described["value"]  # KeyError for a live object: the call cannot be repeated from a file
    return float(value) if value in ("nan", "inf", "-inf") else value


def _tensor(described: Mapping[str, Any], generator: torch.Generator) -> Tensor:
    import torch

    shape, dtype = described["tensor"], getattr(torch, described["dtype"])
    if described.get("values") is not None:
        listed = [float(v) if isinstance(v, str) else v for v in described["values"]]
        made = torch.tensor(listed).reshape(shape).to(dtype)
    elif dtype == torch.bool:
        made = torch.rand(shape, generator=generator) > 0.5
    elif dtype.is_floating_point:
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        made = drawn.mul(float(described.get("std", 1))).add(float(described.get("mean", 0)))
        made = made.clamp(float(described.get("min", "-inf")), float(described.get("max", "inf"))).to(dtype)
    elif dtype.is_complex:
        made = torch.randn(shape, generator=generator, dtype=dtype)
    else:
        low, high = int(described.get("min", 0)), int(described.get("max", 1)) + 1
        made = torch.randint(low, high, shape, generator=generator).to(dtype)
    strided = torch.empty_strided(shape, described["stride"], dtype=dtype)
    if 0 not in described["stride"] or made.numel() < 2:
        made = strided.copy_(made)
    return made.requires_grad_() if described["requires_grad"] else made
