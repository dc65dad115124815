"""Forward, run on the example while every operation is written down.

The user's own Python runs, so helpers, branches, loops and comprehensions resolve by themselves. A tensor that no operation
here has made is refused: nothing is ever taken for a constant.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gradsmith.deriving import composites
from gradsmith.deriving.calls import spoken
from gradsmith.deriving.graph import Graph
from gradsmith.deriving.loops.turns import Appended, Unbound
from gradsmith.deriving.memory import Memory, is_all, scattered
from gradsmith.deriving.node import Node, value_of
from gradsmith.deriving.raising import ends_a_loop, only_raises
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.running import asked_of, user_frame, user_line
from gradsmith.deriving.scalars import Real, Whole, number, plain
from gradsmith.deriving.structured.idioms import stays_whole
from gradsmith.lab.process import torch_says
from gradsmith.source import knowledge as know

_PLACES = (("F", torch.nn.functional), ("torch", torch))
_KEEP = "Keep it a tensor, or pass the number as an argument."
_CUT = "If a gradient should flow, use the tensor itself. If it is a constant, write `.detach()` instead."
_TORCH = "Use the function of torch."
# What leaves the graph: how the source writes it, what it does, and what to do instead.
_LEAVES = {
    "item": ("`.item()` makes a Python number, and no gradient flows through it", _CUT),
    "tolist": ("`.tolist()` makes Python numbers, and no gradient flows through them", _CUT),
    "numpy": ("`.numpy()` leaves PyTorch for NumPy", _TORCH),
    "__array__": ("a function of NumPy is called with the tensor", _TORCH),
    "__float__": ("`float(...)` makes a Python number, and no gradient flows through it", _CUT),
    "__int__": ("`int(...)` takes a number out of the tensor", _KEEP),
    "__index__": ("a tensor is used as a Python index", _KEEP),
    "backward": ("`.backward()` runs backward inside forward", "Return the value, and call backward outside."),
    "register_hook": ("`.register_hook()` registers a hook", "Register it on what forward returns."),
    "data_ptr": ("`.data_ptr()` passes a raw pointer", "Derive the parts around that call."),
}
_HIDDEN = (
    "grad_fn",
    "grad",
    "data",
    "_version",
    "_base",
    "output_nr",
    "_backward_hooks",
)  # what autograd keeps of a tensor
# Made of numbers alone: `new_zeros` and `zeros_like` are operations of a tensor, and sparse tensors have no rules.
_CREATING = frozenset(n for n in know.CREATION if not n.startswith("new_") and not n.endswith("_like"))
_CREATING = _CREATING - {"sparse_coo_tensor"} | {"as_tensor"}
_DRAWING = {"rand", "randn"}  # kept as they were drawn, like `rand_like` and `randn_like`; every other draw is refused
_SAME = (
    "contiguous",
    "cpu",
    "cuda",
    "requires_grad_",
    "positive",
    "alias",
    "conj",
    "resolve_conj",
    "pin_memory",
)
_PLAIN: tuple[str, ...] = (
    "dim",
    "is_floating_point",
    "is_complex",
    "ndimension",
    "stride",
    "is_contiguous",
    "element_size",
    "get_device",
)
_PLAIN += ("__hash__", "__repr__", "__format__", "is_tensor", "storage_offset", "_is_view", "is_nonzero", "__dir__")
_PLAIN += (
    "_set_grad_enabled",
    "finfo",
    "iinfo",
    "result_type",
    "promote_types",
    "get_default_dtype",
    "is_grad_enabled",
)


class Reader(TorchFunctionMode):
    """Active while forward runs; afterwards `node_of(tensor)` tells what each tensor is."""

    def __init__(self, graph: Graph, *, literal_dtypes: bool = False) -> None:
        super().__init__()
        self.literal_dtypes = literal_dtypes
        self.graph = graph
        self.memory = Memory(graph)
        self.promoted: frozenset[tuple[int, str]] = frozenset()  # variables that are tensors from the start
        self.rolled: set[int] = set()  # lines of loops that stay loops
        self.quiet = 0

    # ---- what is known of a tensor

    def register(self, tensor: Tensor, node: Node) -> Tensor:
        return self.memory.hold(tensor, node, given=node.op == "input")

    def known(self, value: Any) -> Node | None:
        if isinstance(value, (Whole, Real)):
            return value.node
        return self.memory.node(value) if isinstance(value, Tensor) else None

    def nodes(self, value: Any) -> Any:
        """The arguments of a call, with Nodes for tensors and for numbers that have one."""
        if isinstance(value, Tensor):
            node = self.known(value)
            if node is None:
                self._unknown(value)
            return node
        if isinstance(value, (Whole, Real)):
            return value.node
        if isinstance(value, Appended):
            return value.node
        if isinstance(value, (tuple, list)):
            return tuple(self.nodes(v) for v in value)
        if isinstance(value, slice):
            return slice(self.nodes(value.start), self.nodes(value.stop), self.nodes(value.step))
        return value

    def _unknown(self, tensor: Tensor) -> None:
        if tensor.requires_grad:
            raise Refused(
                "forward uses a tensor from outside that requires grad.",
                "Make it an argument: as it is, it gets no gradient.",
            )
        told = "forward uses a tensor from outside."
        raise Refused(told, "Make it an argument, or build it inside forward by torch.tensor (not torch.Tensor).")

    # ---- one call

    def __torch_function__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return self._read(func, args, kwargs or {})
        except Refused as refusal:
            raise refusal.at(user_line()) from None

    def _read(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", str(func))
        if name in ("__get__", "__set__"):
            return self._attribute(func, args, setting=name == "__set__")
        if name in _PLAIN:
            return func(*args, **kwargs)
        if name in _LEAVES:
            reason, remedy = _LEAVES[name]
            raise Refused(f"{reason}.", remedy)
        if name == "__bool__" and only_raises(user_frame()):
            node = self._one(args[0])
            self.graph.conditions.setdefault(node, bool(node.value))
            return bool(node.value)
        if name in ("__bool__", "is_nonzero", "equal", "allclose", "__contains__"):
            if ends_a_loop(user_frame()):
                told = "a loop ends when the value of a tensor says so."
                raise Refused(told, "Fix the number of turns, or derive the body of the loop alone.")
            raise Refused(
                "a branch depends on the value of a tensor.",
                "Use torch.where, or derive each side of the branch alone.",
            )
        if name.endswith("_with_indices"):
            plain_name = name.removesuffix("_with_indices")
            raise Refused(f"`{plain_name}` with return_indices=True has no rule.", "Take the values alone.")
        if name in know.RANDOM and name.removesuffix("_like") not in _DRAWING:
            raise Refused(f"`{name}` draws random numbers.", "Draw them outside and pass them as an argument.")
        if name == "__len__":
            return number_of(self.graph.size(self._one(args[0]), 0))
        if name == "size" or name == "numel":
            return self._size(name, args, kwargs)
        if name in _SAME:
            return args[0]
        if name == "clone":  # the same value in memory of its own
            node = self._one(args[0])
            return self.memory.hold(node.value.detach().clone(), node)
        return self._operation(func, name, args, kwargs)

    def _one(self, tensor: Tensor) -> Node:
        node: Node = self.nodes(tensor)
        return node

    def _attribute(self, func: Any, args: Any, *, setting: bool) -> Any:
        name = getattr(getattr(func, "__self__", None), "__name__", "")
        if setting or name in ("data", "grad"):
            raise Refused(f"`.{name}` hides the value from autograd.", "Write .detach() if that is what you mean.")
        if name == "shape":
            sizes = self._size("size", args[:1], {})
            asked = asked_of(user_frame())
            if asked is not None and -len(sizes) <= asked < len(sizes):
                self._counted(sizes[asked], asked)
            return sizes
        if name in ("T", "mT", "H", "mH"):
            node = self._one(args[0])
            if len(node.dims) < 2:
                return args[0]
            if name in ("T", "H") and len(node.dims) > 2:
                order = tuple(reversed(range(len(node.dims))))
                return self._given(self._result_node("permute", (node, order)), args[0])
            return self._given(self._result_node("mT", (node,)), args[0])
        if name in ("real", "imag"):
            if not args[0].is_complex() and name == "real":
                return args[0]
            raise Refused(f"`.{name}` of a complex tensor has no rule.")
        if name not in _HIDDEN:
            found = func(*args)
            if not isinstance(found, Tensor):
                return found
        raise Refused(f"`.{name}` is not understood.", "Keep to the values and shapes of tensors.")

    def _size(self, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        node = self._one(args[0])
        if name == "numel":
            return number(self.graph.make("numel", node))
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dim is not None:
            return self._counted(number_of(self.graph.size(node, int(dim))), int(dim))
        return torch.Size(tuple(number_of(self.graph.size(node, i)) for i in range(args[0].ndim)))

    def _counted(self, size: Any, dim: int) -> Any:
        """The size, remembered as the source counts its dimension: from the end, or from the front."""
        if isinstance(size, Whole) and size.node.op == "size":
            self.graph.counted.setdefault(size.node, dim)
        return size

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if name in ("stack", "cat") and isinstance(args[0], Appended) and args[0].begun:
            return self._inlined(composites.stack_begun if name == "stack" else composites.cat_begun, args, kwargs)
        replacement = getattr(composites, name, None) if not name.startswith("_") else None
        if stays_whole(name, args, kwargs):
            replacement = None
        if replacement is not None and getattr(replacement, "__module__", "") == composites.__name__:
            return self._whole(func, self._inlined(replacement, args, kwargs), args, kwargs)
        if name in ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__") or (
            name.endswith("_") and not name.endswith("__")
        ):
            return self._in_place(func, name, args, kwargs)
        if kwargs.get("out") is not None:
            raise Refused(f"`{name}` writes into `out`.", "Use what it returns.")
        if name in _CREATING or name in _DRAWING:
            return self._created(func, name, args, kwargs)
        name, args = _mirrored(name, args)
        if name == "getitem":
            with self:
                args = (args[0], _without_lists(args[1]))
        node = self.call(name, args, kwargs)
        if name == "getitem" and isinstance(node, Node) and node.is_tensor and _is_basic(args[1]):
            # A view, even where what it reads is known to be the value of something else, which may be expanded.
            given = node.value.detach() if _expanded(args[0]) or not _expanded(node.value) else node.value.clone()
            return self.memory.view(given, node, args[0], ("getitem", (self.nodes(args[1]),)))
        if node is None:
            body = _python_body(func)
            if body is None:
                raise Refused(
                    f"`{spoken(name)}` has no derivative rule.",
                    "Derive the parts around it, or write it with other operations.",
                )
            return self._whole(func, self._inlined(body, args, kwargs), args, kwargs)
        given = self._given(node, args[0] if args and isinstance(args[0], Tensor) else None)
        if name == "unbind" and isinstance(node, Node) and node.op == "unbind":
            return Unbound.of(given, args[0], int(value_of(node.args[1])))
        return given

    def call(self, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The Node of a call of the table; None where the table does not have it."""
        from gradsmith.deriving.calls import bound

        arguments = tuple(self._like("dtype", v) if isinstance(v, torch.dtype) else self.nodes(v) for v in args)
        named = {k: self._like("dtype", v) if isinstance(v, torch.dtype) else self.nodes(v) for k, v in kwargs.items()}
        if "device" in named and args and isinstance(args[0], Tensor) and kwargs["device"] == args[0].device:
            named.pop("device")
        if name == "to" and not any(isinstance(a, (torch.dtype, Tensor)) for a in (*args[1:], *kwargs.values())):
            return arguments[0]
        try:
            op, full = bound(self.graph, name, arguments, named)
        except Refused as refusal:
            if "has no derivative rule" in refusal.reason:
                return None
            raise
        if op == "to" and full[1] is self.graph.make("dtype", full[0]):
            return full[0]
        return self._result_node(op, full)

    def _result_node(self, op: str, args: tuple[Any, ...]) -> Any:
        node = self.graph.make(op, *args)
        if isinstance(node.value, Tensor) and node.value.is_complex():
            raise Refused(f"`{op}` gives a complex tensor.", "Complex numbers have no rules here.")
        if node.needs_grad and not torch.is_grad_enabled() and node.is_tensor:
            node = self.graph.make("detach", node)
        if node.line is None:
            node.line = user_line()
        return node

    def _given(self, node: Node, of: Tensor | None = None) -> Any:
        """What forward gets: a fresh tensor of its own for every value, so that identity tells values apart.

        `of` is the tensor the operation was called on: torch itself says whether the result lies in its memory.
        """
        if node.is_tensor:
            given = node.value.detach()
            base = self._one(of) if of is not None else None
            if of is None or base is None or not _shares(node.value, base.value):
                return self.memory.hold(given, node)
            if node is base:
                return self.memory.view(given, node, of, ("reshape", (self.graph.shape_of(node),)))
            step = (node.op, node.args[1:]) if node.args and node.args[0] is base else ("shared", ())
            return self.memory.view(given, node, of, step)
        if isinstance(node.value, (tuple, list)):
            parts = [self._given(self._result_node("item", (node, i))) for i in range(len(node.value))]
            return _like_tuple(node.value, parts)
        return number(node)

    def _inlined(self, body: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """A composite of torch, read as the operations that it is made of; its own names are nobody's."""
        self.quiet += 1
        try:
            with self:
                return body(*args, **{k: v for k, v in kwargs.items() if k != "_stacklevel" and k != "out"})
        finally:
            self.quiet -= 1

    def _whole(self, func: Any, result: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What a composite returned, remembered as the one call that the source has."""
        name = getattr(func, "__name__", "")
        owner = next((prefix for prefix, place in _PLACES if getattr(place, name, None) is func), None)
        node = self.known(result) if isinstance(result, Tensor) else None
        if owner is None or node is None or node.call is not None or not node.operands or self.quiet:
            return result
        defaults = {k: p.default for k, p in inspect.signature(func).parameters.items()}
        given = {
            k: v for k, v in kwargs.items() if k != "_stacklevel" and v is not defaults.get(k, inspect.Parameter.empty)
        }
        named = tuple((k, self.nodes(v)) for k, v in given.items())
        call = self.graph.alone("create", (f"{owner}.{name}", self.nodes(tuple(args)), named), node.value)
        if not any(n.serial >= node.serial for n in call.operands):
            node.call = call
        return result

    def _created(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if name == "as_tensor" and args and isinstance(args[0], Tensor):
            return args[0]
        if name in ("tensor", "as_tensor") and _holds_tensors(args):
            raise Refused(f"`torch.{name}` copies tensors and loses their gradient.", "Use torch.stack.")
        named = {k: v for k, v in kwargs.items() if v is not None and k not in ("layout", "pin_memory")}
        if named.pop("requires_grad", False):
            raise Refused("forward creates a tensor that requires grad.", "Make it an argument.")
        with torch.no_grad():
            value = func(*args, **kwargs)
        inputs = self.memory.inputs()
        if inputs and name != "empty" and value.device == inputs[0].value.device:
            named.setdefault("device", value.device)  # of the inputs: else it is right on the CPU alone
        pairs = tuple((k, self._like(k, v)) for k, v in named.items())
        node = self.graph.make("create", f"torch.{name}", self.nodes(tuple(args)), pairs, value=value)
        if node.line is None:
            node.line = user_line()
        return self._given(node)

    def _like(self, key: str, value: Any) -> Any:
        """A dtype or device that an input has is written as that input's: examples must not be baked in."""
        if key == "device" or (
            value == torch.float64 and not self.literal_dtypes
        ):  # what is read is always double; who writes float64 is rare
            for node in self.memory.inputs():
                if key == "device" or node.value.dtype == value:
                    return self.graph.make(key, node)
        return self.nodes(value)

    def _reshaped(self, func: Any, new: Node, args: Any, kwargs: dict[str, Any]) -> Tensor:
        """The tensor itself with another shape, over the same memory."""
        target: Tensor = args[0]
        self.memory.reshape(target, new, (new.op, new.args[1:]))
        func(*args, **kwargs)
        return target

    def _in_place(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The same out of place, as the new value of the memory that is written."""
        target = args[0]
        node = self._one(target)
        if name == "__setitem__":
            new = self._assigned(node, self.nodes(_without_lists(args[1])), self.nodes(args[2]))
        else:
            new = self._out_of_place(name, args, kwargs)
        if new is node:
            return target
        if name in know.RESHAPES_IN_PLACE:
            return self._reshaped(func, new, args, kwargs)
        if new.value.shape != target.shape:
            raise Refused(f"`{name}` changes a shape in place.", "Write it out of place.")
        if new.value.dtype != target.dtype:
            new = self.graph.make("to", new, self._like("dtype", target.dtype))
        if new.line is None:
            new.line = user_line()
        self.memory.write(target, new)
        return target

    def _out_of_place(self, name: str, args: Any, kwargs: dict[str, Any]) -> Node:
        node, rest = self._one(args[0]), [self.nodes(a) for a in args[1:]]
        plain_name = name.strip("_").removeprefix("i") if name.startswith("__i") else name.rstrip("_")
        if plain_name in ("zero", "fill", "copy"):
            return self._filled(node, rest[0] if rest else kwargs.get("value", kwargs.get("src", 0)))
        made = self.call({"truediv": "div", "floordiv": "floor_divide"}.get(plain_name, plain_name), args, kwargs)
        if made is None:
            raise Refused(f"`{name}` has no rule.", "Write it out of place.")
        found: Node = made
        return found

    def _filled(self, like: Node, value: Any) -> Node:
        """A value brought to the shape and dtype of what it is written into."""
        if not (isinstance(value, Node) and value.is_tensor):
            filled: Node = self.graph.make("full_like", like, value, None)
            return filled
        if value.value.dtype != like.value.dtype:
            value = self.graph.make("to", value, self._like("dtype", like.value.dtype))
        if value.value.shape != like.value.shape:
            extra = value.value.ndim - like.value.ndim
            if extra > 0:
                value = self.graph.make("getitem", value, (0,) * extra)
            value = self.graph.make("expand", value, self.graph.shape_of(like))
        made: Node = value
        return made

    def _assigned(self, node: Node, index: Any, value: Any) -> Node:
        """`x[index] = value` as a new tensor."""
        parts = index if isinstance(index, tuple) else (index,)
        tensors = [i for i in parts if isinstance(i, Node) and i.is_tensor]
        part = self.graph.make("getitem", node, index)
        if tensors and tensors[0].value.dtype == torch.bool and len(parts) == 1 and parts[0] is tensors[0]:
            return self._masked(node, parts[0], part, value)
        if tensors:
            if len(tensors) < len(parts):
                mixed: Node = self.graph.make("assign", node, index, self._filled(part, value))
                return mixed
            filled = (
                value
                if isinstance(value, Node) and value.is_tensor
                else self.graph.make("new_full", node, (), value, None)
            )
            if filled.value.dtype != node.value.dtype:
                filled = self.graph.make("to", filled, self._like("dtype", node.value.dtype))
            made: Node = self.graph.make("index_put", node, tuple(tensors), filled, False)
            return made
        if all(is_all(i) or i is Ellipsis for i in parts):
            return self._filled(node, value)
        number = not (isinstance(value, Node) and value.is_tensor) and None not in parts
        scatter: Node = scattered(self.graph, node, parts, value if number else self._filled(part, value))
        return scatter

    def _masked(self, node: Node, mask: Node, part: Node, value: Any) -> Node:
        """`x[mask] = value`: where, for a number or for `other[mask]`; else the values in order."""
        made: Any
        if not (isinstance(value, Node) and value.is_tensor) or value.value.ndim == 0:
            spread = mask
            for _ in range(node.value.ndim - mask.value.ndim):
                spread = self.graph.make("unsqueeze", spread, -1)
            made = self.graph.make("where", spread, value, node)
        elif (
            value.op == "getitem"
            and value.args[1] is mask
            and value.args[0].value.shape == node.value.shape == mask.value.shape
        ):
            made = self.graph.make("where", mask, value.args[0], node)
        else:
            made = self.graph.make("index_put", node, (mask,), self._filled(part, value), False)
        node_made: Node = made
        return node_made


def _shares(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.numel() > 0


def _expanded(tensor: Tensor) -> bool:
    return any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape))


def _is_basic(index: Any) -> bool:
    """Integers, slices, None and Ellipsis, with which x[index] lies in the memory of x."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(i, (Tensor, bool, list)) for i in parts)


def _like_tuple(example: Any, parts: list[Any]) -> Any:
    """The parts in a tuple of the same kind: named, where torch names them."""
    kind = type(example)
    return kind(parts) if kind in (tuple, list) or hasattr(kind, "n_fields") else kind(*parts)


def number_of(dim: Any) -> Any:
    return number(dim) if isinstance(dim, Node) else dim


def _mirrored(name: str, args: Any) -> tuple[str, Any]:
    """`__rsub__` and its like, and the dunder names."""
    if name == "__getitem__":
        return "getitem", args
    if name in ("__rsub__", "__rpow__", "__rdiv__", "__rtruediv__", "__rfloordiv__", "__rmatmul__", "__rmod__"):
        plain_name = {"div": "div", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder"}
        bare = name.strip("_")[1:]
        return plain_name.get(bare, bare), (args[1], args[0])
    if name in ("__radd__", "__rmul__"):
        return name.strip("_")[1:], (args[1], args[0])
    if name.startswith("__") and name.endswith("__"):
        bare = name.strip("_")
        return {"floordiv": "floor_divide", "mod": "remainder", "truediv": "div"}.get(bare, bare), args
    return name, args


def _python_body(func: Any) -> Callable[..., Any] | None:
    """A function of torch that is written in Python, made to run its body instead of asking us again."""
    code, scope = getattr(func, "__code__", None), getattr(func, "__globals__", None)
    if code is None or scope is None or not str(scope.get("__name__", "")).startswith("torch.") or func.__closure__:
        return None
    quiet = {name: (lambda *_: False) for name in scope if name.startswith("has_torch_function")}
    made = types.FunctionType(code, {**scope, **quiet}, func.__name__, func.__defaults__)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _without_lists(index: Any) -> Any:
    """x[[1, 2]] is not x[1, 2]: a list of numbers is a tensor of them; x[[[1], [2]]] is x[[1], [2]], where torch reads it so."""
    if isinstance(index, list) and torch_says.reads_as_tuple(index):
        index = tuple(index)
    if isinstance(index, tuple):
        return tuple(torch.tensor(i) if isinstance(i, list) else _without_lists(i) for i in index)
    return torch.tensor(index) if isinstance(index, list) else index


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, Tensor):
        return True
    return isinstance(value, (tuple, list)) and any(_holds_tensors(v) for v in value)


__all__ = ["Reader", "plain"]
