"""Recorded calls as readable JSON, written only when asked for. Shapes and statistics, never pickled objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradsmith.findings import GradsmithError, jsonable

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from gradsmith.lab.subject.binding import Example
    from gradsmith.recording.call import Call
    from gradsmith.recording.modules import ModuleCall
    from gradsmith.recording.tape import Tape

SCHEMA = 1
_LISTED = 64  # elements; larger tensors are described, not listed


def write(tape: Tape, path: Path) -> None:
    """The tape as JSON, for `gradsmith check --recorded`."""
    from gradsmith.about import VERSION

    calls = [_described(call) for call in tape.calls]
    modules = [_described_module(call) for call in tape.modules]
    text = json.dumps({"schema": SCHEMA, "gradsmith": VERSION, "calls": calls, "modules": modules}, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise GradsmithError(f"cannot write {path}: {error.strerror}") from None


def read(path: Path, what: str = "calls") -> list[dict[str, Any]]:
    """The calls in a recorded file, or its modules; one sentence for whatever is wrong with it."""
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
    return [entry for entry in data.get(what) or () if isinstance(entry, dict)]


def examples_in(path: Path, name: str, seed: int = 0) -> list[Example]:
    """Inputs for the Function called `name`, drawn as the file describes them; calls with live objects are left out."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    found: list[Example] = []
    for call in read(path):
        if not _named(call.get("function", ""), name):
            continue
        try:
            args = tuple(_value(a, generator) for a in call["args"])
        except (LookupError, TypeError, ValueError, RuntimeError):
            continue
        if args and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args):
            found.append((args, {}))
    return found


def modules_in(path: Path, cls: type[nn.Module], seed: int = 0) -> list[Example]:
    """`(instance, *inputs)` for a module class, built as the file says; what took live objects is left out."""
    import torch

    from gradsmith.lab.process.state import preserved, seed_all

    generator = torch.Generator().manual_seed(seed)
    found: list[Example] = []
    for entry in read(path, "modules"):
        if not _named(entry.get("module", ""), cls.__qualname__) or entry.get("constructor") is None:
            continue
        with preserved():
            seed_all(seed)
            try:
                instance = cls(**{k: _value(v, generator) for k, v in entry["constructor"].items()})
                args = tuple(_value(a, generator) for a in entry["args"])
                kwargs = {k: _value(v, generator) for k, v in entry["kwargs"].items()}
            except Exception:  # the user's constructor, which may have changed since
                continue
        found.append(((instance, *args), kwargs))
    return found


def _named(described: str, name: str) -> bool:
    return described == name or described.rpartition(".")[2] == name.rpartition(".")[2]


def _described_module(call: ModuleCall) -> dict[str, Any]:
    from gradsmith.lab.subject.target import short_name

    built = call.built
    return {
        "module": short_name(type(call.module)),
        "constructed": call.code,
        "line": built.line if built is not None else None,
        "constructor": {k: _description(v) for k, v in built.arguments.items()} if built is not None else None,
        "functions": [short_name(cls) for cls in call.functions],
        "args": [_description(a) for a in call.args],
        "kwargs": {k: _description(v) for k, v in call.kwargs.items()},
    }


def _described(call: Call) -> dict[str, Any]:
    from gradsmith.lab.subject.target import short_name

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
