"""Which assignments can reach a name where it is read: reaching definitions over Python's structured statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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


class Flow:
    """Reaching definitions of one function body; `at[name_node]` holds the bindings a loaded name may have."""

    def __init__(self, function: FunctionNode) -> None:
        self.at: dict[ast.Name, tuple[Binding, ...]] = {}
        self.params: dict[str, Binding] = {}
        self.bindings: list[Binding] = []
        self._made: dict[tuple[int, tuple[Binding, ...]], Binding] = {}
        self._breaks: list[list[Env]] = []
        env: Env = {}
        arguments = function.args
        extra = [a for a in (arguments.vararg, arguments.kwarg) if a]
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra):
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
        env[name] = (binding,)
        return binding

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
        if isinstance(node, ast.NamedExpr):
            self._read(node.value, env)
            self._bind(env, node.target.id, node.target, "assign", node.value)
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            inner = dict(env)
            for generator in node.generators:
                self._read(generator.iter, inner)
                self._target(generator.target, generator.iter, inner, "loop", None)
                for test in generator.ifs:
                    self._read(test, inner)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self._read(part, inner)
            return
        if isinstance(node, ast.Lambda):
            inner = dict(env)
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                self._bind(inner, arg.arg, arg, "other")
            self._read(node.body, inner)
            return
        for child in children(node):
            self._read(child, env)

    def _note(self, node: ast.Name, env: Env) -> None:
        now = env.get(node.id, ())
        before = self.at.get(node)
        self.at[node] = now if before is None else _union(before, now)

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
        self._read(statement.value, env)
        target = statement.target
        if isinstance(target, ast.Name):
            previous = env.get(target.id, ())
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

        return self._loop(body, statement.orelse, env)

    def _while(self, statement: ast.While, env: Env) -> Env | None:
        def body(inner: Env) -> Env | None:
            self._read(statement.test, inner)
            return self._block(statement.body, inner)

        return self._loop(body, statement.orelse, env)

    def _loop(self, body: Callable[[Env], Env | None], orelse: Sequence[ast.stmt], env: Env) -> Env | None:
        self._breaks.append([])
        around = _joined(env, body(dict(env))) or env
        after = _joined(around, body(dict(around))) or around
        left = self._breaks.pop()
        out = self._block(orelse, dict(after)) if orelse else after
        for other in left:
            out = _joined(out, other)
        return out

    def _try(self, statement: ast.Try, env: Env) -> Env | None:
        done = self._block(statement.body, dict(env))
        middle = _joined(env, done) or env
        ends = [self._block(statement.orelse, dict(done)) if done is not None else None]
        for handler in statement.handlers:
            inner = dict(middle)
            if handler.name:
                self._bind(inner, handler.name, handler, "other")
            ends.append(self._block(handler.body, inner))
        out: Env | None = None
        for end in ends:
            out = _joined(out, end)
        if statement.finalbody:
            after = self._block(statement.finalbody, dict(out if out is not None else middle))
            out = after if out is not None else None
        return out

    def _with(self, statement: ast.With | ast.AsyncWith, env: Env) -> Env | None:
        for item in statement.items:
            self._read(item.context_expr, env)
            if item.optional_vars is not None:
                self._target(item.optional_vars, None, env, "with", statement)
        return self._block(statement.body, env)

    def _match(self, statement: ast.Match, env: Env) -> Env | None:
        self._read(statement.subject, env)
        out: Env | None = dict(env)
        for case in statement.cases:
            inner = dict(env)
            for node in nodes_under(case.pattern):
                name = getattr(node, "name", None) or getattr(node, "rest", None)
                if isinstance(name, str):
                    self._bind(inner, name, node, "other")
            if case.guard is not None:
                self._read(case.guard, inner)
            out = _joined(out, self._block(case.body, inner))
        return out

    def _leave(self, statement: ast.stmt, env: Env) -> None:
        self._plain(statement, env)

    def _break(self, statement: ast.stmt, env: Env) -> None:
        if self._breaks:
            self._breaks[-1].append(dict(env))

    def _nested(self, statement: ast.stmt, env: Env) -> Env:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = dict(env)
            arguments = statement.args
            extra = [a for a in (arguments.vararg, arguments.kwarg) if a]
            for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra):
                self._bind(inner, arg.arg, arg, "other")
            for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d), *statement.decorator_list):
                self._read(default, env)
            outer, self._breaks = self._breaks, []
            self._block(statement.body, inner)
            self._breaks = outer
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


def _names(envs: Iterable[Env]) -> dict[str, None]:
    return {name: None for env in envs for name in env}


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
    ast.Continue: Flow._break,
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
