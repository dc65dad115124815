"""Method: one function body of a custom gradient, and the questions rules ask about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from gradsmith.source import calls, guards, memory, values
from gradsmith.source.annotations import Value, annotated, constant, either
from gradsmith.source.context import ContextUse, read_context
from gradsmith.source.flow import Binding, Flow
from gradsmith.source.returns import Return, read_returns
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source.calls import CallSite
    from gradsmith.source.file import FileModel
    from gradsmith.source.guards import Guard
    from gradsmith.source.memory import Source, Write

Binder = Literal["static", "class", "instance", "function"]
Role = Literal["input", "grad_output", "output", "inputs", "other"]
Node = ast.FunctionDef | ast.AsyncFunctionDef


N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True, eq=False)
class Param:
    """One parameter. `index` counts from 0 after ctx, as `ctx.needs_input_grad` and the returned gradients do."""

    name: str
    index: int
    node: ast.arg
    kind: Literal["positional", "vararg", "keyword", "kwarg"]
    role: Role
    default: ast.expr | None = None
    declared: Value = field(default_factory=Value)

    @property
    def annotation(self) -> ast.expr | None:
        return self.node.annotation


@dataclass(eq=False)
class Method:
    """`forward`, `setup_context`, `backward` (or `vjp`), `jvp`, `vmap` of a Function; also any function of a file.

    `ctx` is the name of the context parameter, `params` are the others, in order. `inherited` says that the method
    stands in a base class.
    """

    name: str
    node: Node
    file: FileModel
    binder: Binder
    ctx: str | None
    params: list[Param]
    decorators: tuple[str, ...]
    inherited: bool = False
    _values: dict[ast.AST, Value | None] = field(default_factory=dict, repr=False)
    _sources: dict[ast.AST, frozenset[Source]] = field(default_factory=dict, repr=False)
    # Augmented assignments build on each other: without a memory, twenty `if c: x += 1` are a million paths.
    _augmented_values: dict[Binding, Value | None] = field(default_factory=dict, repr=False)
    _augmented_sources: dict[Binding, frozenset[Source]] = field(default_factory=dict, repr=False)

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.node)

    @cached_property
    def context(self) -> ContextUse:
        """Everything this method does with its ctx."""
        return read_context(self)

    @cached_property
    def returns(self) -> list[Return]:
        """Every return statement of this body (none of functions nested in it)."""
        return read_returns(self)

    @cached_property
    def writes(self) -> list[Write]:
        """Every in-place operation: `x.add_()`, `x += 1` on a tensor, `x[i] = 0`, `out=x`, `inplace=True`."""
        return memory.read_writes(self)

    @cached_property
    def calls(self) -> list[CallSite]:
        """Every call, with its resolved name."""
        return calls.read_calls(self)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the body, outer before inner, in source order of statements."""
        return [n for statement in self.node.body for n in nodes_under(statement)]

    def of(self, kind: type[N]) -> list[N]:
        """The nodes of one class. Methods are asked for few kinds of nodes many times."""
        return cast(list[N], self._by_kind.get(kind, []))

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.nodes:
            found.setdefault(node.__class__, []).append(node)
        return found

    @property
    def positional(self) -> list[Param]:
        return [p for p in self.params if p.kind == "positional"]

    @property
    def vararg(self) -> Param | None:
        return next((p for p in self.params if p.kind == "vararg"), None)

    @property
    def kwarg(self) -> Param | None:
        return next((p for p in self.params if p.kind == "kwarg"), None)

    @cached_property
    def raises_only(self) -> bool:
        """Nothing but `raise` (after an optional docstring): the author says there is no such thing."""
        body = [s for s in self.node.body if not _is_docstring(s)]
        return any(isinstance(s, ast.Raise) for s in body) and not self.returns

    @cached_property
    def is_stub(self) -> bool:
        """Nothing but a docstring, `pass` or `...`."""
        return all(isinstance(s, ast.Pass) or _is_constant(s) for s in self.node.body)

    def decorated_with(self, *names: str) -> bool:
        """Does a decorator's dotted name end in one of these?"""
        return any(d == n or d.endswith("." + n) for d in self.decorators for n in names)

    def param(self, name: str) -> Param | None:
        return next((p for p in self.params if p.name == name), None)

    def definitions(self, name: ast.Name) -> tuple[Binding, ...]:
        """The assignments this loaded name may come from; empty for globals and names of an outer function."""
        return self.flow.at.get(name, ())

    def is_free(self, name: ast.Name) -> bool:
        """A name that is not bound in this method: a global, a builtin, or a variable of an enclosing function."""
        return name in self.flow.at and not self.flow.at[name]

    def resolve(self, node: ast.expr) -> ast.expr:
        """The expression behind a name that has exactly one assignment here; the node itself otherwise."""
        for _ in range(10):
            if not isinstance(node, ast.Name):
                break
            found = self.definitions(node)
            if len(found) != 1 or found[0].how != "assign" or found[0].value is None:
                break
            node = found[0].value
        return node

    def param_of(self, node: ast.expr) -> Param | None:
        """The parameter that this name still is: not rebound on any path."""
        if not isinstance(node, ast.Name):
            return None
        found = self.definitions(node)
        if len(found) == 1 and found[0].how == "param":
            return self.param(node.id)
        return None

    def value(self, node: ast.expr) -> Value:
        """What is known of an expression: a tensor, an int, a shape, None, unknown ..."""
        return values.infer(self, node) or Value()

    def sources(self, node: ast.expr) -> frozenset[Source]:
        """Whose memory this expression may be: inputs, grad_outputs, saved tensors it is, or is a view of."""
        return memory.sources(self, node)

    def sources_at(self, node: ast.expr, place: ast.AST) -> frozenset[Source]:
        """The same, as far as the conditions under which `place` runs allow."""
        return memory.sources_at(self, node, place)

    def op(self, node: ast.AST) -> str | None:
        """`torch.matmul(a, b)`, `a.matmul(b)` and `a @ b` are all "matmul"; None for what is no torch operation."""
        return calls.op(self, node)

    def dotted(self, node: ast.AST | None) -> str | None:
        return self.file.dotted(node)

    def guards(self, node: ast.AST) -> list[Guard]:
        """The conditions under which `node` runs, innermost first."""
        return guards.read_guards(self, node)

    def needs_tested(self, node: ast.AST) -> frozenset[int] | None:
        """Inputs whose `ctx.needs_input_grad` guards `node`; None when some test of it cannot be tied to an index."""
        return guards.needs_tested(self, node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement a node belongs to."""
        while not isinstance(node, ast.stmt):
            node = self.file.parents[node]
        return node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Parents of a node, innermost first, up to and without this method."""
        current = self.file.parents.get(node)
        while current is not None and current is not self.node:
            yield current
            current = self.file.parents.get(current)

    def in_nested_function(self, node: ast.AST) -> bool:
        """Inside a lambda or a function defined in this method, so perhaps never run, or run later."""
        return any(isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for a in self.ancestors(node))


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def read_params(node: Node, skip: int, roles: tuple[Role, ...] | Role, file: FileModel) -> list[Param]:
    """The parameters after the first `skip`; `roles` is one role for all, or one for each."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]

    def role(index: int) -> Role:
        if isinstance(roles, str):
            return roles
        return roles[index] if index < len(roles) else "other"

    def declared(arg: ast.arg, default: ast.expr | None) -> Value:
        promise = annotated(arg.annotation, file.dotted)
        if isinstance(default, ast.Constant):
            given = constant(default.value)
            if arg.annotation is None:
                # `eps=1e-5` is a number; `bias=None` says only that it may be missing.
                return Value(optional=True) if given.kind == "none" else given
            return either(promise, given) if given.kind == "none" else promise
        return promise

    out = [
        Param(arg.arg, i, arg, "positional", role(i), default, declared(arg, default))
        for i, (arg, default) in enumerate(zip(positional[skip:], defaults[skip:]))
    ]
    if arguments.vararg:
        out.append(Param(arguments.vararg.arg, len(out), arguments.vararg, "vararg", role(len(out)), None))
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        out.append(Param(arg.arg, len(out), arg, "keyword", "other", default, declared(arg, default)))
    if arguments.kwarg:
        out.append(Param(arguments.kwarg.arg, len(out), arguments.kwarg, "kwarg", "other", None))
    return out
