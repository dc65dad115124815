"""What autograd records of a value: the saved tensors and parameters it comes from by operations that have a derivative.

A kernel, an extension, NumPy, `.detach()` and `torch.no_grad()` end the record. So does a call whose body is not in this
file; functions of the same file are followed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradsmith.source import knowledge as know
from gradsmith.source import memory, written
from gradsmith.source.behind import body_called
from gradsmith.source.calls import CallSite
from gradsmith.source.roles import returned_expressions

if TYPE_CHECKING:
    from gradsmith.source.flow import Binding
    from gradsmith.source.method import Method, Node
    from gradsmith.source.model import FunctionModel

_DEPTH = 4
_FOREIGN = ("import", "def")
_METADATA = know.MEASURED | {"data", "grad", "grad_fn", "names"}
_ENDS = (
    know.CREATION
    | know.TO_NUMBER
    | know.TO_INT
    | know.TO_FLAG
    | know.TO_SHAPE
    | {"detach", "detach_", "numpy", "tolist", "from_numpy"}
)
_COUNTING = (
    know.VIEWS | know.MAYBE_SAME | {"sum", "cumsum", "count_nonzero", "any", "all", "long", "int", "float", "to"}
)
_TRANSPARENT = ("torch.", "einops.", "functools.", "itertools.", "operator.", "math.")
_NOT_RECORDED = ("torch.distributed.", "torch._C.", "torch.autograd.grad", "torch.autograd.backward")
_UNRECORDED = frozenset(("no_grad", "inference_mode", "custom_op", "triton_op", "once_differentiable", "jit", "njit"))


class Origin(NamedTuple):
    """Where a value comes from: a saved tensor (number `position` of `of`; None: not known), or the parameter `name`.

    `computed` says that at least one operation lies in between: the value is not that tensor, nor a view of it.
    """

    kind: Literal["saved", "param"]
    name: str = ""
    position: int | None = None
    of: int | None = None
    computed: bool = False


@dataclass
class RecordedOrigins:
    """What was found. `unseen`: somewhere the record ends in a kernel, or in a call that is not in this file.

    `discrete`: somewhere it ends in a comparison, or in a count of what passed one.
    """

    origins: set[Origin] = field(default_factory=set)
    unseen: bool = False
    discrete: bool = False


def gradients(function: FunctionModel) -> list[RecordedOrigins]:
    """What each gradient that backward returns is computed from."""
    backward = function.backward
    if backward is None:
        return []
    tracers = [_Tracer(function, backward) for _ in returned_expressions(backward)]
    for tracer, node in zip(tracers, returned_expressions(backward)):
        tracer.walk(node)
    return [tracer.trace for tracer in tracers]


def value(function: FunctionModel, method: Method, node: ast.expr) -> RecordedOrigins:
    """What one expression of a method is computed from."""
    tracer = _Tracer(function, method)
    tracer.walk(node)
    return tracer.trace


@dataclass(eq=False)
class _Tracer:
    function: FunctionModel
    method: Method
    above: tuple[ast.AST, ...] = ()
    trace: RecordedOrigins = field(default_factory=RecordedOrigins)
    _seen: set[tuple[object, bool, int | None]] = field(default_factory=set)

    def walk(self, node: ast.AST | None, computed: bool = False, part: int | None = None) -> None:
        """Follow an expression back; `part` is the element of interest, where it gives back several."""
        if node is None or (node, computed, part) in self._seen:
            return
        self._seen.add((node, computed, part))
        if isinstance(node, ast.Name):
            self._name(node, computed)
        elif isinstance(node, ast.Call):
            self._call(node, computed, part)
        elif isinstance(node, ast.Attribute):
            if self.method.context.is_saved_tensors(node):
                self.trace.origins.add(Origin("saved", computed=computed))
            elif node.attr not in _METADATA and not self.method.context.is_ctx(node.value):
                self.walk(node.value, computed)
        elif isinstance(node, ast.Subscript):
            self._subscript(node, computed, part)
        elif isinstance(node, ast.IfExp):
            self.walk(node.body, computed, part)
            self.walk(node.orelse, computed, part)
        elif isinstance(node, ast.BinOp):
            self._all((node.left, node.right), True)
        elif isinstance(node, ast.Compare):
            self.trace.discrete = True
        elif isinstance(node, ast.UnaryOp):
            self.walk(node.operand, True)
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            self._all(node.elts, computed)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            self.walk(node.elt, computed)
        elif isinstance(node, (ast.Dict, ast.BoolOp)):
            self._all(node.values, computed)
        elif isinstance(node, ast.DictComp):
            self.walk(node.value, computed)
        elif isinstance(node, ast.Lambda):
            self.walk(node.body, computed)
        elif isinstance(node, (ast.NamedExpr, ast.Starred)):
            self.walk(node.value, computed, part)

    def _all(self, nodes: Sequence[ast.AST | None], computed: bool) -> None:
        for node in nodes:
            self.walk(node, computed)

    def _name(self, node: ast.Name, computed: bool) -> None:
        for binding in self.method.definitions(node):
            self._binding(binding, computed)
        for item in self._written.get(node.id, ()):
            self.walk(item, True)

    def _binding(self, binding: Binding, computed: bool) -> None:
        if (binding, computed, None) in self._seen:
            return
        self._seen.add((binding, computed, None))
        if binding.how == "param":
            self.trace.origins.add(Origin("param", binding.name, computed=computed))
        elif binding.value is None or written.without_graph(self.method, binding.node):
            return
        elif binding.how != "assign" and self.method.context.is_saved_tensors(binding.value):
            self.trace.origins.add(Origin("saved", binding.name, binding.index, _targets(binding), computed))
        elif binding.how == "augment":
            self.walk(binding.value, True)
            for earlier in binding.previous:
                self._binding(earlier, True)
        else:
            self.walk(binding.value, computed, binding.index if binding.how == "unpack" else None)

    def _subscript(self, node: ast.Subscript, computed: bool, part: int | None) -> None:
        if self.method.context.is_saved_tensors(node.value):
            self.trace.origins.add(Origin("saved", "", _position(node.slice, part), None, computed))
        else:
            self.walk(node.value, computed)

    def _call(self, node: ast.Call, computed: bool, part: int | None) -> None:
        method, func = self.method, node.func
        site = CallSite(node, method.dotted(func), method.op(node))
        given = [*node.args, *(k.value for k in node.keywords)]
        if site.dotted in know.WITHOUT_DERIVATIVE:
            return  # nothing gets lost silently
        if site.is_kernel or site.is_extension or site.is_numpy:
            self.trace.unseen = True
        elif site.op is not None:
            indices = part == 1 and site.op in know.WITH_INDICES
            self.trace.discrete |= indices or _is_count(method, node)
            if indices or site.op in _ENDS or method.value(node).constant:
                return
            receiver = [func.value] if isinstance(func, ast.Attribute) else []
            self._all([*receiver, *given], computed or site.op not in written.SAME)
        elif (inside := self._body(node)) is not None:
            self._follow(node, inside, computed, part)
        elif self._is_transparent(node, site):
            self._all([func, *given], True)
        else:
            self.trace.unseen = True

    def _is_transparent(self, node: ast.Call, site: CallSite) -> bool:
        """A call of torch, of a builtin, or of a method of a local value: differentiable as far as anybody can tell."""
        func, dotted = node.func, site.dotted or ""
        root = written.root(func)
        local = self.method.definitions(root) if isinstance(root, ast.Name) else ()
        if isinstance(root, ast.Name) and root.id in (self.method.ctx, "self", "cls"):
            return False
        if local:
            # A function that was handed in is not seen; a method of a value that was handed in is a tensor's, most likely.
            strange = _FOREIGN if isinstance(func, ast.Attribute) else (*_FOREIGN, "param", "other", "with")
            return all(b.how not in strange for b in local)
        if dotted.startswith(_NOT_RECORDED):
            return any(k.arg == "create_graph" and _is_true(k.value) for k in node.keywords)
        if dotted.startswith(_TRANSPARENT) or (isinstance(func, ast.Attribute) and func.attr == "apply"):
            return True
        if isinstance(func, ast.Name):
            return func.id in know.PASS_ON
        return isinstance(root, (ast.BinOp, ast.Subscript, ast.IfExp))

    def _body(self, node: ast.Call) -> Node | None:
        """The function that is called, where it stands in this file: nested, at the top, or in the class itself."""
        here = self.function.file is self.method.file
        return body_called(self.method, node.func, self.function.node if here else None)

    def _follow(self, call: ast.Call, body: Node, computed: bool, part: int | None) -> None:
        from gradsmith.source.method import Method, read_params
        from gradsmith.source.model import decorator_names

        decorators = decorator_names(body, self.method.file)
        if body in self.above or len(self.above) >= _DEPTH or any(d.split(".")[-1] in _UNRECORDED for d in decorators):
            self.trace.unseen = True
            return
        params = read_params(body, 0, "other", self.method.file)
        names = [p.name for p in params if p.kind == "positional"]
        bound: dict[str, list[ast.expr]] = {}
        for position, argument in enumerate(call.args):
            spread = isinstance(argument, ast.Starred) or any(isinstance(a, ast.Starred) for a in call.args[:position])
            for name in names[position:] if spread else names[position : position + 1]:
                bound.setdefault(name, []).append(argument)
        for keyword in call.keywords:
            if keyword.arg is not None:
                bound.setdefault(keyword.arg, []).append(keyword.value)
        ctx = next((n for n, given in bound.items() if any(self.method.context.is_ctx(g) for g in given)), None)
        followed = self.function.followed
        inside = followed.get((body, ctx))
        if inside is None:
            inside = Method(body.name, body, self.method.file, "function", ctx, params, decorators)
            followed[body, ctx] = inside
        tracer = _Tracer(self.function, inside, (*self.above, body))
        for item in inside.returns:
            chosen = item.elements[part] if part is not None and item.elements and part < len(item.elements) else None
            tracer.walk(chosen if chosen is not None else item.node.value, False, part if chosen is None else None)
        self.trace.unseen |= tracer.trace.unseen
        self.trace.discrete |= tracer.trace.discrete
        for origin in tracer.trace.origins:
            through = computed or origin.computed
            if origin.kind == "saved":
                self.trace.origins.add(origin._replace(computed=through))
            else:
                self._all(bound.get(origin.name, ()), through)

    @cached_property
    def _written(self) -> dict[str, list[ast.expr]]:
        return written.by_name(self.method)


def _is_count(method: Method, node: ast.expr) -> bool:
    """`(a > b).sum(dim).unsqueeze(dim)`, also by way of names."""
    for _ in range(8):
        node = method.resolve(node)
        if isinstance(node, ast.Compare):
            return True
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and method.op(node) in _COUNTING):
            return False
        node = node.func.value
    return False


def _position(index: ast.expr, part: int | None) -> int | None:
    """Which tensor `saved[2]` is, or element `part` of `saved[1:]`; None where that is not certain."""
    if isinstance(index, ast.Slice):
        start = memory.slice_start(index)
        return start + part if start is not None and part is not None else None
    position = index.value if isinstance(index, ast.Constant) else None
    return position if isinstance(position, int) and position >= 0 else None


def _targets(binding: Binding) -> int | None:
    """How many tensors `a, b = ctx.saved_tensors` unpacks; None where that is open."""
    statement = binding.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(t, ast.Starred) for t in target.elts):
        return None
    return len(target.elts)


def _is_true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and not node.value)
