"""A plan as JSON and back: the captured graph, how it was split, and the C that was emitted. Nothing in it is executed."""

from __future__ import annotations

import base64
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from .capture import Joint
from .emit_c import Emitted, Kernel, Slot
from .engine import Engine
from .nodes import dtype_of, shape_of
from .plan import Plan
from .split import Split

_ROLES = ("x", "state", "params", "grad_y", "grad_state", "y", "new_state", "d_x", "d_state", "d_params")
_STAGES = ("once", "hoisted", "forward", "saved", "recomputed", "backward", "sums", "exports", "after", "late")
_NAMESPACES = ("aten", "prims")


class Unwritable(Exception):
    """A plan holds something that JSON and this file have no words for."""


def to_json(plan: Plan) -> dict[str, Any]:
    """Everything that planning found out about a step on the C backend."""
    parts, engine = plan.parts, plan.engine
    if parts is None or engine is None or plan.backend != "c":
        raise Unwritable(plan.backend)
    joint = parts.joint
    return {
        "rows": joint.rows,
        "dtype": _word(plan.dtype),
        "y_dtypes": [_word(d) for d in plan.y_dtypes],
        "state_dtypes": [_word(d) for d in plan.state_dtypes],
        "rowwise": list(plan.rowwise),
        "seen_used": list(plan.seen_used),
        "placed": plan.placed,
        "names": plan.names,
        "notes": plan.notes,
        "checked": sorted(plan.checked),
        "truth": _word(plan.truth),
        "uneven": sorted(plan.uneven.items()),
        "y_spec": _spec(joint.y_spec),
        "nodes": [_node(node) for node in joint.graph.nodes if node.op != "output"],
        "constants": {name: _tensor(value) for name, value in joint.constants.items()},
        "roles": {role: _names(getattr(joint, role)) for role in _ROLES},
        "stages": {stage: _names(getattr(parts, stage)) for stage in _STAGES},
        "kept_states": _names([n for n in joint.state if n in parts.kept_states]),
        "readable": _names([n for n in joint.graph.nodes if n in parts.readable]),
        "source": engine.emitted.source,
        "forward": _kernel(engine.emitted.forward),
        "backward": None if engine.emitted.backward is None else _kernel(engine.emitted.backward),
    }


def from_json(data: dict[str, Any], state_spec: Any) -> Plan:
    """The plan that `to_json` wrote, with its loops loaded."""
    graph = fx.Graph()
    nodes: dict[str, fx.Node] = {}
    for name, op, target, args, kwargs, shape, dtype in data["nodes"]:
        node = graph.create_node(op, _target(op, target), _read(args, nodes), _read(kwargs, nodes), name=name)
        node.meta["val"] = torch.empty(shape, dtype=_read(dtype, nodes), device="meta")
        nodes[name] = node

    def found(names: list[str | None]) -> list[Any]:
        return [None if name is None else nodes[name] for name in names]

    joint = Joint(
        graph, {name: _read_tensor(value) for name, value in data["constants"].items()}, data["rows"],
        **{role: found(names) for role, names in data["roles"].items()},
        y_spec=pytree.treespec_loads(data["y_spec"]), state_spec=state_spec,
    )  # fmt: skip
    parts = Split(joint, kept_states=set(found(data["kept_states"])), readable=set(found(data["readable"])))
    for stage, names in data["stages"].items():
        setattr(parts, stage, found(names))
    backward = None if data["backward"] is None else _read_kernel(data["backward"], nodes)
    emitted = Emitted(data["source"], _read_kernel(data["forward"], nodes), backward)
    dtype = _read(data["dtype"], nodes)
    return Plan(
        "c", parts=parts, engine=Engine(parts, emitted, dtype), dtype=dtype,
        rowwise=tuple(data["rowwise"]), seen_used=tuple(data["seen_used"]), placed=data["placed"],
        names=data["names"], notes=data["notes"],
        y_dtypes=tuple(_read(data["y_dtypes"], nodes)), state_dtypes=tuple(_read(data["state_dtypes"], nodes)),
        checked=set(data["checked"]), truth=_read(data["truth"], nodes), uneven=dict(data["uneven"]),
    )  # fmt: skip


def _names(nodes: list[Any]) -> list[str | None]:
    return [None if node is None else node.name for node in nodes]


def _spec(spec: Any) -> str:
    try:
        return pytree.treespec_dumps(spec)
    except NotImplementedError as error:  # a structure that the user's own class defines
        raise Unwritable(str(error)) from error


def _node(node: fx.Node) -> list[Any]:
    target = str(node.target)
    if node.op == "call_function" and (
        not isinstance(node.target, torch._ops.OpOverload) or target.partition(".")[0] not in _NAMESPACES
    ):
        raise Unwritable(target)
    val = node.meta.get("val")
    if not isinstance(val, Tensor):
        raise Unwritable(f"{node.name} is no tensor")
    return [
        node.name, node.op, target, _word(list(node.args)), _word(dict(node.kwargs)),
        list(shape_of(node)), _word(dtype_of(node)),
    ]  # fmt: skip


def _target(op: str, name: str) -> Any:
    if op != "call_function":
        return name
    namespace, packet, overload = name.split(".")
    if namespace not in _NAMESPACES:
        raise Unwritable(name)
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _word(thing: Any) -> Any:
    """An argument of a node; what JSON lacks becomes a pair of its kind and its name."""
    if isinstance(thing, fx.Node):
        return ["node", thing.name]
    if isinstance(thing, list | tuple):
        return ["list", [_word(item) for item in thing]]
    if isinstance(thing, dict):
        return ["dict", {key: _word(value) for key, value in thing.items()}]
    if thing is None or type(thing) in (bool, int, float, str):
        return ["is", thing]
    for kind in (torch.dtype, torch.layout, torch.memory_format):
        if isinstance(thing, kind):
            return ["torch", str(thing).removeprefix("torch.")]
    if isinstance(thing, torch.device):
        return ["device", str(thing)]
    raise Unwritable(f"a {type(thing).__name__} among the arguments")


def _read(word: Any, nodes: dict[str, fx.Node]) -> Any:
    if word and isinstance(word[0], list):
        return [_read(item, nodes) for item in word]
    kind, value = word
    if kind == "node":
        return nodes[value]
    if kind == "list":
        return tuple(_read(item, nodes) for item in value)
    if kind == "dict":
        return {key: _read(item, nodes) for key, item in value.items()}
    if kind == "torch":
        return getattr(torch, value)
    return torch.device(value) if kind == "device" else value


def _tensor(value: Tensor) -> list[Any]:
    plain = value.detach().contiguous()
    raw = bytes(plain.reshape(-1).view(torch.uint8).tolist()) if plain.numel() else b""
    return [list(plain.shape), _word(plain.dtype), base64.b64encode(raw).decode()]


def _read_tensor(data: list[Any]) -> Tensor:
    shape, dtype, raw = data[0], _read(data[1], {}), bytearray(base64.b64decode(data[2]))
    return torch.frombuffer(raw, dtype=dtype).reshape(shape) if raw else torch.empty(shape, dtype=dtype)


def _kernel(kernel: Kernel) -> dict[str, Any]:
    slots = [[slot.name, slot.role, slot.node.name, slot.position] for slot in kernel.slots]
    return {
        "name": kernel.name,
        "slots": slots,
        "fixed": kernel.fixed_bytes,
        "per_row": kernel.bytes_per_row,
        "shared": kernel.shared_bytes,
        "work": kernel.work_per_row,
    }


def _read_kernel(data: dict[str, Any], nodes: dict[str, fx.Node]) -> Kernel:
    slots = tuple(Slot(name, role, nodes[node], position) for name, role, node, position in data["slots"])
    return Kernel(data["name"], slots, data["fixed"], data["per_row"], data["shared"], data["work"])
