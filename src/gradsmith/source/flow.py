"""Which assignments can reach a name where it is read: reaching definitions over Python's structured statements."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gradsmith.source.walk import children, nodes_under

How = Literal["param", "assign", "unpack", "augment", "loop", "with", "import", "def", "other"]
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Env = dict[str, tuple["Binding", ...]]


@dataclass(frozen=True, eq=False, slots=True)
class Binding:
    """One place where a name gets a value.

    `value` is the assigned expression; for "unpack" and "loop" the expression that is taken apart, with `index` the
    position in it (None: unknown, or starred). `previous` are the bindings an augmented assignment builds on.
    """

    name: str
    node: ast.AST
    how: How
    value: ast.expr | None = None
    index: int | None = None
    previous: tuple[Binding, ...] = ()
    statement: ast.stmt | None = None


@dataclass(slots=True)
class _Loop:
    """What the names hold where a loop is left, and where its next round is started early."""

    breaks: list[Env] = field(default_factory=list)
    continues: list[Env] = field(default_factory=list)


@dataclass(slots=True)
class _Scope:
    """One function body. `caught`: for each `try` around the current place, all that its names may hold when it is left early.

    `late` are reads in inner functions, which see what is bound after them, too.
    """

    loops: list[_Loop] = field(default_factory=list)
    caught: list[Env] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    reads: list[ast.Name] = field(default_factory=list)
    late: dict[str, list[ast.Name]] = field(default_factory=dict)


class Flow:
    """Reaching definitions of one function body; `at[name_node]` holds the bindings a loaded name may have.

    Not followed: what an inner function writes through `nonlocal`, and exceptions that a context manager swallows.
    """

    def __init__(self, function: FunctionNode) -> None:
        self.at: dict[ast.Name, tuple[Binding, ...]] = {}
        self.params: dict[str, Binding] = {}
        self.bindings: list[Binding] = []
        self._made: dict[tuple[int, tuple[Binding, ...]], Binding] = {}
        self._scope = _Scope()
        self._maybe = 0  # above 0 in parts of an expression that may be skipped
        self._walruses: list[str] = []
        env: Env = {}
        for arg in _every(function.args):
            self.params[arg.arg] = self._bind(env, arg.arg, arg, "param")
        self._block(function.body, env)

    def _bind(
        self,
        env: Env,
        name: str,
        node: ast.AST,
        how: How,
        value: ast.expr | None = None,
        index: int | None = None,
        previous: tuple[Binding, ...] = (),
        statement: ast.stmt | None = None,
    ) -> Binding:
        # A loop body is walked twice: the second walk must meet the same Binding, or sets would never settle.
        key = (id(node), previous)
        binding = self._made.get(key)
        if binding is None:
            binding = self._made[key] = Binding(name, node, how, value, index, previous, statement)
            self.bindings.append(binding)
        env[name] = _union(env.get(name, ()), (binding,)) if self._maybe else (binding,)
        scope = self._scope
        scope.bound.add(name)
        for left_early in scope.caught:
            left_early[name] = _union(left_early.get(name, ()), (binding,))
        if name in scope.late:
            for read in scope.late[name]:
                self.at[read] = _union(self.at[read], (binding,))
        return binding

    def _inside(self, parameters: ast.arguments, walk: Callable[[Env], object], env: Env) -> None:
        """The body of a function or lambda: it runs when it is called, and sees what its names hold then."""
        outer, maybe = self._scope, self._maybe
        self._scope, self._maybe = _Scope(), 0
        names = dict(env)
        for arg in _every(parameters):
            self._bind(names, arg.arg, arg, "other")
        walk(names)
        inner, self._scope, self._maybe = self._scope, outer, maybe
        for read in inner.reads:
            if read.id not in inner.bound:
                outer.late.setdefault(read.id, []).append(read)
                outer.reads.append(read)

    def _block(self, statements: Sequence[ast.stmt], env: Env) -> Env | None:
        """The environment after the statements; None when control never gets there."""
        current: Env | None = env
        for statement in statements:
            if current is None:
                # Unreachable code still gets bindings for its names, so that no question about it fails.
                current = dict(env)
            step = _STEPS.get(type(statement))
            current = step(self, statement, current) if step else self._plain(statement, current)
        return current

    def _plain(self, statement: ast.stmt, env: Env) -> Env:
        for child in children(statement):
            self._read(child, env)
        return env

    def _read(self, node: ast.AST, env: Env) -> None:
        kind = type(node)
        if kind is ast.Name:
            if isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                self._note(node, env)  # type: ignore[arg-type]
            return
        if kind is ast.Constant:
            return
        special = _READS.get(kind)
        if special is not None:
            special(self, node, env)
            return
        for child in children(node):
            self._read(child, env)

    def _walrus(self, node: ast.NamedExpr, env: Env) -> None:
        self._read(node.value, env)
        self._walruses.append(node.target.id)
        self._bind(env, node.target.id, node.target, "assign", node.value)

    def _some(self, parts: Iterable[ast.expr], env: Env) -> None:
        """Parts of an expression that may be skipped: a name they bind may keep what it held."""
        self._maybe += 1
        for part in parts:
            self._read(part, env)
        self._maybe -= 1

    def _bool_op(self, node: ast.BoolOp, env: Env) -> None:
        self._read(node.values[0], env)
        self._some(node.values[1:], env)

    def _if_exp(self, node: ast.IfExp, env: Env) -> None:
        self._read(node.test, env)
        self._some((node.body, node.orelse), env)

    def _compare(self, node: ast.Compare, env: Env) -> None:
        self._read(node.left, env)
        self._read(node.comparators[0], env)
        self._some(node.comparators[1:], env)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Env) -> None:
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        inner, first = dict(env), len(self._walruses)
        for _ in range(2):
            for generator in node.generators:
                self._some((generator.iter,), inner)
                self._element(generator, inner)
                self._some(generator.ifs, inner)
            self._some(parts, inner)
            if len(self._walruses) == first:
                return
        # A name bound by := belongs to the function, and the next round sees it.
        for name in self._walruses[first:]:
            env[name] = inner[name]

    def _element(self, generator: ast.comprehension, env: Env) -> None:
        """The variable of a comprehension, which nobody outside of it sees."""
        outer, maybe = self._scope, self._maybe
        self._scope, self._maybe = _Scope(), 0
        self._target(generator.target, generator.iter, env, "loop", None)
        self._scope, self._maybe = outer, maybe

    def _lambda(self, node: ast.Lambda, env: Env) -> None:
        for default in _defaults(node.args):
            self._read(default, env)
        self._inside(node.args, lambda names: self._read(node.body, names), env)

    def _note(self, node: ast.Name, env: Env) -> None:
        now = env.get(node.id, ())
        before = self.at.get(node)
        self.at[node] = now if before is None else _union(before, now)
        self._scope.reads.append(node)

    def _target(
        self,
        target: ast.AST,
        value: ast.expr | None,
        env: Env,
        how: How,
        statement: ast.stmt | None,
        index: int | None = None,
    ) -> None:
        if isinstance(target, ast.Name):
            self._bind(env, target.id, target, how, value, index, statement=statement)
        elif isinstance(target, ast.Starred):
            self._target(target.value, value, env, "other", statement)
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
            literal = value.elts if isinstance(value, (ast.Tuple, ast.List)) and how == "assign" else None
            if literal is not None and (starred is not None or len(literal) != len(target.elts)):
                literal = None
            if literal is not None and any(isinstance(v, ast.Starred) for v in literal):
                literal = None
            for i, part in enumerate(target.elts):
                if literal is not None:
                    self._target(part, literal[i], env, "assign", statement)
                else:
                    known = (
                        i
                        if (starred is None or i < starred) and how in ("assign", "unpack") and index is None
                        else None
                    )
                    self._target(part, value, env, "unpack" if how == "assign" else how, statement, known)
        else:
            self._read(target, env)

    def _assign(self, statement: ast.Assign, env: Env) -> Env:
        self._read(statement.value, env)
        for target in statement.targets:
            self._target(target, statement.value, env, "assign", statement)
        return env

    def _annotated(self, statement: ast.AnnAssign, env: Env) -> Env:
        if statement.value is not None:
            self._read(statement.value, env)
            self._target(statement.target, statement.value, env, "assign", statement)
        return env

    def _augmented(self, statement: ast.AugAssign, env: Env) -> Env:
        target = statement.target
        # The old value is taken before the right side is evaluated.
        previous = env.get(target.id, ()) if isinstance(target, ast.Name) else ()
        self._read(statement.value, env)
        if isinstance(target, ast.Name):
            self._bind(env, target.id, target, "augment", statement.value, None, previous, statement)
        else:
            self._read(target, env)
        return env

    def _if(self, statement: ast.If, env: Env) -> Env | None:
        self._read(statement.test, env)
        return _joined(self._block(statement.body, dict(env)), self._block(statement.orelse, dict(env)))

    def _for(self, statement: ast.For | ast.AsyncFor, env: Env) -> Env | None:
        self._read(statement.iter, env)

        def body(inner: Env) -> Env | None:
            self._target(statement.target, statement.iter, inner, "loop", statement)
            return self._block(statement.body, inner)

        return self._loop(None, body, statement.orelse, env)

    def _while(self, statement: ast.While, env: Env) -> Env | None:
        return self._loop(statement.test, lambda inner: self._block(statement.body, inner), statement.orelse, env)

    def _loop(
        self, test: ast.expr | None, body: Callable[[Env], Env | None], orelse: Sequence[ast.stmt], env: Env
    ) -> Env | None:
        loop = _Loop()
        around = env
        self._scope.loops.append(loop)
        for _ in range(2):
            start = dict(around)
            if test is not None:
                self._read(test, start)
            for end in (body(start), *loop.continues):
                around = _joined(around, end) or around
        self._scope.loops.pop()
        if test is not None:
            around = dict(around)
            self._read(test, around)
        out = self._block(orelse, dict(around)) if orelse else around
        for left in loop.breaks:
            out = _joined(out, left)
        return out

    def _try(self, statement: ast.Try, env: Env) -> Env | None:
        scope = self._scope
        loop = scope.loops[-1] if scope.loops else _Loop()
        already = [(left, len(left)) for left in (loop.breaks, loop.continues)]
        anywhere, in_body = dict(env), dict(env)
        scope.caught += [anywhere, in_body]
        done = self._block(statement.body, dict(env))
        scope.caught.pop()
        out = self._block(statement.orelse, dict(done)) if done is not None else None
        for handler in statement.handlers:
            inner = dict(in_body)
            if handler.type is not None:
                self._read(handler.type, inner)
            if handler.name:
                self._bind(inner, handler.name, handler, "other")
            out = _joined(out, self._block(handler.body, inner))
        scope.caught.pop()
        if not statement.finalbody:
            return out
        self._block(statement.finalbody, anywhere)  # on the way of an exception or a return
        for left, count in already:
            passing = left[count:]
            del left[count:]
            for names in passing:
                after = self._block(statement.finalbody, dict(names))
                left += [after] if after is not None else []
        return self._block(statement.finalbody, dict(out)) if out is not None else None

    def _with(self, statement: ast.With | ast.AsyncWith, env: Env) -> Env | None:
        for item in statement.items:
            self._read(item.context_expr, env)
            if item.optional_vars is not None:
                self._target(item.optional_vars, None, env, "with", statement)
        return self._block(statement.body, env)

    def _match(self, statement: ast.Match, env: Env) -> Env | None:
        self._read(statement.subject, env)
        out: Env | None = None
        for case in statement.cases:
            inner = dict(env)
            for node in nodes_under(case.pattern):
                name = getattr(node, "name", None) or getattr(node, "rest", None)
                if isinstance(name, str):
                    self._bind(inner, name, node, "other")
                elif isinstance(node, ast.Name):
                    self._note(node, env)
            if case.guard is not None:
                self._read(case.guard, inner)
                env = _joined(env, inner) or env  # a guard that fails leaves the names bound
            out = _joined(out, self._block(case.body, dict(inner)))
        return _joined(out, env)

    def _leave(self, statement: ast.stmt, env: Env) -> None:
        self._plain(statement, env)

    def _break(self, statement: ast.stmt, env: Env) -> None:
        if self._scope.loops:
            self._scope.loops[-1].breaks.append(dict(env))

    def _continue(self, statement: ast.stmt, env: Env) -> None:
        if self._scope.loops:
            self._scope.loops[-1].continues.append(dict(env))

    def _nested(self, statement: ast.stmt, env: Env) -> Env:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for outside in (*_defaults(statement.args), *statement.decorator_list):
                self._read(outside, env)
            self._inside(statement.args, functools.partial(self._block, statement.body), env)
            self._bind(env, statement.name, statement, "def")
        elif isinstance(statement, ast.ClassDef):
            self._bind(env, statement.name, statement, "def")
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                self._bind(env, (alias.asname or alias.name).partition(".")[0], alias, "import")
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    env.pop(target.id, None)
                else:
                    self._read(target, env)
        return env


def _union(a: tuple[Binding, ...], b: tuple[Binding, ...]) -> tuple[Binding, ...]:
    return a if a == b else (*a, *(x for x in b if x not in a))


def _joined(a: Env | None, b: Env | None) -> Env | None:
    if a is None or b is None:
        return a if b is None else b
    return {name: _union(a.get(name, ()), b.get(name, ())) for name in _names((a, b))}


def _every(arguments: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]


def _names(envs: Iterable[Env]) -> dict[str, None]:
    return {name: None for env in envs for name in env}


_READS: dict[type[ast.AST], Callable[..., None]] = {
    ast.NamedExpr: Flow._walrus,
    ast.BoolOp: Flow._bool_op,
    ast.IfExp: Flow._if_exp,
    ast.Compare: Flow._compare,
    ast.ListComp: Flow._comprehension,
    ast.SetComp: Flow._comprehension,
    ast.GeneratorExp: Flow._comprehension,
    ast.DictComp: Flow._comprehension,
    ast.Lambda: Flow._lambda,
}
_STEPS: dict[type[ast.stmt], Callable[..., Env | None]] = {
    ast.Assign: Flow._assign,
    ast.AnnAssign: Flow._annotated,
    ast.AugAssign: Flow._augmented,
    ast.If: Flow._if,
    ast.For: Flow._for,
    ast.AsyncFor: Flow._for,
    ast.While: Flow._while,
    ast.Try: Flow._try,
    ast.With: Flow._with,
    ast.AsyncWith: Flow._with,
    ast.Match: Flow._match,
    ast.Return: Flow._leave,
    ast.Raise: Flow._leave,
    ast.Continue: Flow._continue,
    ast.Break: Flow._break,
    ast.FunctionDef: Flow._nested,
    ast.AsyncFunctionDef: Flow._nested,
    ast.ClassDef: Flow._nested,
    ast.Import: Flow._nested,
    ast.ImportFrom: Flow._nested,
    ast.Delete: Flow._nested,
}
if hasattr(ast, "TryStar"):
    _STEPS[ast.TryStar] = Flow._try
