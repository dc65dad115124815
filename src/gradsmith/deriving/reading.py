"""From a function and example inputs to a graph: inputs, options, outputs, and the names that the user gave."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradsmith.deriving.containers import Containers, holds_tensors
from gradsmith.deriving.containers import rebuilt as rebuilt_container
from gradsmith.deriving.graph import Graph
from gradsmith.deriving.loops.reading import Loops
from gradsmith.deriving.node import Node
from gradsmith.deriving.reader import Reader
from gradsmith.deriving.rebuilding import rebuilt_for
from gradsmith.deriving.refusal import Promoted, Refused
from gradsmith.deriving.running import user_line
from gradsmith.deriving.scalars import Real, Whole, number

_MOST_TURNS = 4


@dataclass(frozen=True)
class KeptOnContext:
    """What a Function puts on ctx: saved tensors in their order, and attributes; Nodes where they are known."""

    saved: tuple[Any, ...]
    attributes: dict[str, Any]


@dataclass
class Reading:
    """What forward does, on one example."""

    fn: Callable[..., Any]
    name: str
    graph: Graph
    signature: inspect.Signature
    inputs: dict[str, Node]  # tensors and numbers, in the order of the signature
    options: dict[str, Any]  # everything else: strings, flags, None, dtypes
    outputs: list[Node]
    single: bool
    notes: list[str] = field(default_factory=list)
    kept: KeptOnContext | None = None  # what the forward of a Function put on ctx
    containers: Containers = field(default_factory=Containers)

    @property
    def tensors(self) -> list[Node]:
        return [n for n in self.inputs.values() if n.is_tensor]


def read(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    trusting: bool,
    pinned: bool = False,
    literal_dtypes: bool = False,
    unrolled: bool = False,
    fixed: frozenset[str] = frozenset(),
    promoted: frozenset[tuple[int, str]] = frozenset(),
) -> Reading:
    """Run `fn` on copies of the example and write down what it does. Raises Refused where it cannot be derived.

    What is read is double. A float64 in the source is the dtype of an input, unless `literal_dtypes` says otherwise.
    Loops stay loops, unless `unrolled` says that they are read turn by turn. The numbers that `fixed` names are options: what
    is derived holds for the value that they have.
    """
    function = plain_function(fn)
    signature = inspect.signature(function)
    context = getattr(function, "gradsmith_context", None)
    call: Callable[..., Any] = function
    if context is not None:
        signature = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != context])
        call = functools.partial(function, Context())
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise Refused(f"the inputs do not fit `{function.__name__}`: {error}.") from None
    bound.apply_defaults()
    graph = Graph(trusting=trusting, pinned=pinned)
    reader = Reader(graph, literal_dtypes=literal_dtypes)
    reader.promoted = promoted
    inputs: dict[Any, Node] = {}  # by name; inside of a container by its place
    options: dict[str, Any] = {}
    values = {}
    containers = Containers()
    wanted = any(t.requires_grad for v in bound.arguments.values() for t in _tensors_in(v))
    plain_call = context is None and not hasattr(function, "gradsmith_setup")
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if (kind is kind.VAR_POSITIONAL and value == ()) or (kind is kind.VAR_KEYWORD and value == {}):
            continue
        if kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD):
            raise Refused(f"forward takes `*{name}`.", "Name its arguments.")
        if holds_tensors(value) and plain_call:
            containers.whole[name] = value
            values[name] = _contained(graph, reader, (name, ()), value, wanted, inputs)
        else:
            values[name] = _argument(graph, reader, name, value, wanted, inputs, options, fixed)
    rebuilt: Any = rebuilt_for(function, graph, Loops(reader, unrolled=unrolled))
    ctx = Context()
    setup = functools.partial(_set_up, function, ctx, tuple(values.values()))
    try:
        outputs, single = _run(reader, rebuilt, values if context is None else {context: ctx, **values}, setup)
    except Promoted as found:
        again = {"trusting": trusting, "pinned": pinned, "literal_dtypes": literal_dtypes, "unrolled": unrolled}
        return read(fn, args, kwargs, **again, fixed=fixed, promoted=promoted | {found.where})
    if not any(out.needs_grad for out in outputs):
        raise Refused("no output depends on an input that requires grad.", "Set requires_grad on the example inputs.")
    kept = KeptOnContext(
        tuple(_seen(reader, t) for t in vars(ctx).pop("gradsmith_saved", ())),
        {name: _seen(reader, value) for name, value in vars(ctx).items() if name != "gradsmith_saved"},
    )
    named = containers.named(inputs)
    call = containers.packed(call)
    return Reading(
        call,
        function.__name__,
        graph,
        bound.signature,
        named,
        options,
        outputs,
        single,
        kept=kept,
        containers=containers,
    )


def _tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _tensors_in(v)]
    return [value] if isinstance(value, Tensor) else []


def _contained(
    graph: Graph, reader: Reader, place: tuple[str, tuple[int, ...]], value: Any, wanted: bool, inputs: dict[Any, Node]
) -> Any:
    """A list or tuple as forward gets it; every tensor and number in it is an input without a name so far."""
    if isinstance(value, (tuple, list)):
        argument, path = place
        parts = [_contained(graph, reader, (argument, (*path, i)), v, wanted, inputs) for i, v in enumerate(value)]
        return rebuilt_container(value, parts)
    if isinstance(value, Tensor) or _is_free_number(value):
        own: dict[Any, Node] = {}
        given = _argument(graph, reader, f"{place[0]} {place[1]}", value, wanted, own, {}, frozenset())
        inputs[place] = node = next(iter(own.values()))
        node.name = None
        return given
    raise Refused(f"`{place[0]}` holds tensors and a {type(value).__name__}.", "Pass them as arguments of their own.")


def _is_free_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _seen(reader: Reader, value: Any) -> Any:
    """The Node behind a value, also inside a tuple; the value itself where there is none."""
    if isinstance(value, (tuple, list)):
        return tuple(_seen(reader, v) for v in value)
    node = reader.known(value)
    return value if node is None else node


def _set_up(function: Any, ctx: Context, inputs: tuple[Any, ...], result: Any) -> None:
    """Run setup_context, where there is one: whatever it cannot do here is not kept."""
    setup = getattr(function, "gradsmith_setup", None)
    if setup is not None:
        try:
            setup(ctx, inputs, result)
        except Exception:  # of the user's code, on stand-ins
            vars(ctx).clear()


def plain_function(fn: Any) -> Callable[..., Any]:
    """The Python function behind what is given."""
    if isinstance(fn, torch.nn.Module) or (isinstance(fn, type) and issubclass(fn, torch.nn.Module)):
        raise Refused(
            "a module keeps its parameters to itself.", "Write a function that takes them as arguments, and derive it."
        )
    if isinstance(fn, type) and issubclass(fn, torch.autograd.Function):
        return _forward_of(fn)
    found = inspect.unwrap(fn) if callable(fn) else fn
    if isinstance(found, types.MethodType):
        raise Refused("a bound method keeps its object to itself.", "Write a function that takes what it needs.")
    if not isinstance(found, types.FunctionType):
        told = f"{getattr(fn, '__name__', fn)!r} is not a Python function, so its source cannot be read."
        raise Refused(told, "Write a function that calls it, and derive that.")
    if not found.__name__.isidentifier():
        raise Refused("a lambda has no name to call the Function by.", "Write it as `def name(...):`, and derive that.")
    return found


class Context:
    """Stands for ctx while the forward of a Function is read, and holds what it is given."""

    needs_input_grad = (True,) * 64

    def save_for_backward(self, *tensors: Any) -> None:
        self.gradsmith_saved = tensors

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def _forward_of(cls: type[torch.autograd.Function]) -> Callable[..., Any]:
    """The forward of a Function as a plain function, without ctx, under the Function's name."""
    forward = inspect.unwrap(cls.forward)
    if not isinstance(forward, types.FunctionType):
        raise Refused(f"{cls.__name__} has no forward in Python.")
    parameters = list(inspect.signature(forward).parameters)
    own = cls.setup_context is not torch.autograd.Function.setup_context
    made = types.FunctionType(
        forward.__code__, forward.__globals__, forward.__name__, forward.__defaults__, forward.__closure__
    )
    made.__kwdefaults__ = forward.__kwdefaults__
    made.__name__ = "_".join(_words(cls.__name__))
    if own:
        made.__dict__["gradsmith_setup"] = cls.setup_context
    else:
        made.__dict__["gradsmith_context"] = parameters[0]
    return made


def _words(name: str) -> list[str]:
    """`MyOp` as my, op.

    >>> _words("FocalLoss")
    ['focal', 'loss']
    """
    words: list[str] = []
    for i, letter in enumerate(name.strip("_")):
        if i == 0 or (letter.isupper() and not name.strip("_")[i - 1].isupper()):
            words.append("")
        words[-1] += letter.lower()
    return words


def _argument(
    graph: Graph,
    reader: Reader,
    name: str,
    value: Any,
    wanted: bool,
    inputs: dict[Any, Node],
    options: dict[str, Any],
    fixed: frozenset[str],
) -> Any:
    if isinstance(value, Tensor):
        if value.is_complex():
            raise Refused(f"`{name}` is complex.", "Complex numbers have no rules here.")
        copy = value.detach().clone()
        copy = copy.double() if copy.is_floating_point() else copy
        node = graph.leaf("input", (name,), copy)
        node.needs_grad = value.is_floating_point() and (value.requires_grad or not wanted)
        node.name = name
        inputs[name] = node
        return reader.register(copy.detach(), node)
    if _is_free_number(value) and name not in fixed:
        node = graph.leaf("input", (name,), value)
        node.name = name
        inputs[name] = node
        return number(node)
    if holds_tensors(value):
        raise Refused(
            f"`{name}` is a {type(value).__name__} of tensors.", "Pass each tensor as an argument of its own."
        )
    options[name] = value
    return value


def _run(
    reader: Reader, function: Callable[..., Any], values: dict[str, Any], then: Callable[[Any], None]
) -> tuple[list[Node], bool]:
    namer = Namer(reader, function.__code__)
    before = sys.gettrace()
    sys.settrace(namer.watch)
    try:
        with reader, torch.enable_grad():
            result = function(**values)
            then(result)
        namer.refuse_long_loops()
    except (Refused, Promoted):
        raise
    except Exception as error:
        where = _line_in(error, function)
        raise Refused(
            f"forward raised {type(error).__name__}: {error}.", "Give inputs on which it runs.", where
        ) from None
    finally:
        sys.settrace(before)
    single = not isinstance(result, (tuple, list))
    outputs = []
    for value in [result] if single else result:
        node = reader.known(value)
        if node is None or not node.is_tensor:
            what = (
                "a tensor that no operation here has made" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            )
            raise Refused(f"forward returns {what}.", "Return tensors, or a tuple of tensors.")
        outputs.append(node)
    return outputs, single


def _line_in(error: BaseException, function: Any) -> int | None:
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found or user_line()


class Namer:
    """Gives every value the name of the first variable that holds it. Names of forward itself win over those of helpers."""

    def __init__(self, reader: Reader, code: types.CodeType) -> None:
        self.reader, self.code = reader, code
        self.visits: dict[tuple[Any, int], int] = {}  # by frame, which lives on: ids are used again

    def refuse_long_loops(self) -> None:
        """A loop is unrolled up to four turns; more would not be readable."""
        longest = {
            line: n for (_, line), n in self.visits.items() if n > _MOST_TURNS and line not in self.reader.rolled
        }
        for node in self.reader.graph.pool.values():
            if node.line in longest and node.needs_grad:
                turns = longest[node.line]
                raise Refused(
                    f"the loop around this line has {turns} turns; unrolled, backward would not be readable.",
                    "Derive the body of the loop alone, or use gs.scan.",
                    node.line,
                )

    def watch(self, frame: Any, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if (
            self.reader.quiet
            or "/torch/" in path
            or "gradsmith/deriving" in path
            or frame.f_code.co_name.startswith("<")
        ):
            return None
        return self._look

    def _look(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            key = (frame, frame.f_lineno)
            self.visits[key] = self.visits.get(key, 0) + 1
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, (Tensor, Whole, Real)):
                node = self.reader.memory.seen(value) if isinstance(value, Tensor) else value.node
                if node is not None and node.op == "size" and frame.f_code is self.code and isinstance(value, Whole):
                    self.reader.graph.size_names.setdefault(node, name)
                if (
                    node is not None
                    and node.name is None
                    and node.op not in ("size", "literal")
                    and not name.startswith("_")
                ):
                    node.name = name
        return self._look
