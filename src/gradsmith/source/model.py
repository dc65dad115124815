"""FunctionModel: one custom gradient as rules see it, an autograd.Function or a custom op with register_autograd."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

from gradsmith.findings import Applicability, Edit, Finding, Severity
from gradsmith.source import declared, gradients, never_taken, qualnames, roles
from gradsmith.source.context import AttributeRead, AttributeWrite, Mark, Save, Unpack
from gradsmith.source.file import FileModel
from gradsmith.source.method import Binder, Method, Param, Role, read_params
from gradsmith.source.module_names import dotted_name
from gradsmith.source.suppressions import DeclaredInComment
from gradsmith.source.walk import nodes_under

METHODS = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")


_UNSEEN = "= unseen"  # among the names of methods: any that is assigned


@dataclass(eq=False)
class FunctionModel:
    """A custom gradient.

    `name` is the class's (or the op's), `qualname` its `__qualname__`. Methods may be inherited; `Method.inherited`
    tells. `kind` is "function" for autograd.Function, "custom_op" for torch.library.custom_op with register_autograd.
    """

    name: str
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    file: FileModel
    kind: Literal["function", "custom_op"] = "function"
    methods: dict[str, Method] = field(default_factory=dict)
    bases: list[FunctionModel] = field(default_factory=list)
    # Methods that are assigned in the class body (`setup_context = shared`) and stand where nobody reads.
    unseen: frozenset[str] = frozenset()
    # The bodies of called functions that were followed, by their node and the name of ctx there: each is read once.
    followed: dict[tuple[ast.AST, str | None], Method] = field(default_factory=dict, repr=False)
    absent: dict[str, int] = field(default_factory=dict, repr=False)  # what no base had, by name, of how many bases

    @cached_property
    def qualname(self) -> str:
        return qualnames.of_class(self.file, self.node) if isinstance(self.node, ast.ClassDef) else self.name

    def method(self, name: str) -> Method | None:
        """A method of this class or, marked `inherited`, of the nearest base that has it."""
        if name in self.methods:
            return self.methods[name]
        if self.absent.get(name) == len(self.bases):
            return None
        for base in self._ancestors(without=name):
            if name in base.methods:
                found = base.methods[name]
                self.methods[name] = inherited = Method(
                    found.name, found.node, found.file, found.binder, found.ctx, found.params, found.decorators, True
                )
                return inherited
        if self.file.project is not None:  # all bases are known: asking again would walk up the same chain
            self.absent[name] = len(self.bases)
        return None

    def _ancestors(self, without: str = "") -> Iterator[FunctionModel]:
        """The bases and theirs, nearest first; those above one that is known to have no method `without` are left out."""
        seen: set[FunctionModel] = {self}
        stack = list(reversed(self.bases))
        while stack:
            base = stack.pop()
            if base not in seen:
                seen.add(base)
                yield base
                if base.absent.get(without) != len(base.bases):
                    stack.extend(reversed(base.bases))

    @property
    def forward(self) -> Method | None:
        return self.method("forward")

    @property
    def setup_context(self) -> Method | None:
        return self.method("setup_context")

    @property
    def backward(self) -> Method | None:
        """`backward`, or `vjp`, which is another name for it."""
        return self.method("backward") or self.method("vjp")

    @property
    def jvp(self) -> Method | None:
        return self.method("jvp")

    @property
    def vmap(self) -> Method | None:
        return self.method("vmap")

    @property
    def inputs(self) -> list[Param]:
        """What `apply` takes, in the order in which backward returns gradients."""
        return self.forward.params if self.forward else []

    @property
    def grad_outputs(self) -> list[Param]:
        """What backward gets, in the order of forward's outputs."""
        return self.backward.params if self.backward else []

    @property
    def before(self) -> list[Method]:
        """The methods that run on the way forward and may have a ctx: forward and setup_context."""
        return [m for m in (self.forward, self.setup_context) if m is not None]

    @property
    def saves(self) -> list[Save]:
        """Every `save_for_backward` on the way forward."""
        return [s for m in self.before for s in m.context.saves if s.name == "save_for_backward"]

    @property
    def unpacks(self) -> list[Unpack]:
        """Every read of `ctx.saved_tensors` in backward."""
        return self.backward.context.unpacks if self.backward else []

    @property
    def marks(self) -> list[Mark]:
        return [mark for m in self.before for mark in m.context.marks]

    @property
    def ctx_writes(self) -> list[AttributeWrite]:
        """`ctx.attr = value` on the way forward."""
        return [w for m in self.before for w in m.context.writes]

    @property
    def ctx_reads(self) -> list[AttributeRead]:
        """`ctx.attr` read in backward."""
        return self.backward.context.reads if self.backward else []

    @property
    def ctx_escapes(self) -> bool:
        """ctx is handed to other code, which may save, mark or read things that we do not see."""
        around = [*self.before, *([self.backward] if self.backward else [])]
        return any(m.context.escapes for m in around) or bool(self.unseen) or self._unseen_above()

    def _unseen_above(self) -> bool:
        if self.absent.get(_UNSEEN) == len(self.bases):
            return False
        found = any(base.unseen for base in self._ancestors(without=_UNSEEN))
        if not found and self.file.project is not None:
            self.absent[_UNSEEN] = len(self.bases)
        return found

    @property
    def materializes(self) -> bool:
        """False after `ctx.set_materialize_grads(False)`: grad_outputs may then be None."""
        marks = [m for m in self.marks if m.name == "set_materialize_grads"]
        return not any(isinstance(e, ast.Constant) and e.value is False for m in marks for e in m.exprs)

    @property
    def once_differentiable(self) -> bool:
        return self.backward is not None and self.backward.decorated_with("once_differentiable")

    @cached_property
    def declaration(self) -> DeclaredInComment | None:
        """`# gradsmith: surrogate[...]` or `approximate`, or the decorator `@gs.surrogate(...)`, here or at a base."""
        seen: set[FunctionModel] = set()
        stack = [self]
        while stack:
            model = stack.pop()
            if model in seen:
                continue
            seen.add(model)
            # What a base has found out about its own bases need not be found out again.
            known = vars(model).get("declaration", model.own_declaration)
            if known is not None:
                return cast(DeclaredInComment, known)
            if "declaration" not in vars(model):
                stack.extend(reversed(model.bases))
        return None

    @property
    def own_declaration(self) -> DeclaredInComment | None:
        """What stands at this class itself; at the op or at its backward, for a custom op."""
        found = declared.written_at(self.file, self.node)
        if found is None and self.kind == "custom_op" and self.backward is not None:
            found = declared.written_at(self.backward.file, self.backward.node)
        return found or self._decorated() or self._named_by_project()

    def _named_by_project(self) -> DeclaredInComment | None:
        asked = self.file.project.surrogate_of if self.file.project is not None else None
        kind = asked(dotted_name(self.file.path, self.qualname)) if asked is not None else None
        return DeclaredInComment("surrogate", kind) if kind is not None else None

    def _decorated(self) -> DeclaredInComment | None:
        for decorator in self.node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            dotted = self.file.dotted(call) or ""
            if dotted.startswith("gradsmith.") and dotted.endswith((".surrogate", ".approximate")):
                arguments = decorator.args if isinstance(decorator, ast.Call) else []
                kind = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else ""
                return DeclaredInComment("surrogate" if dotted.endswith("surrogate") else "approximate", str(kind))
        return None

    @cached_property
    def is_namespace(self) -> bool:
        """Nobody applies it, and somebody calls its methods: a class that only holds functions together.

        Asked of all files that mention it. Where none mentions it, whoever imports it may apply it.
        """
        if self.kind != "function" or not isinstance(self.node, ast.ClassDef):
            return False
        project = self.file.project
        word = f"{self.name}."
        if f"{word}apply" in self.file.text or (project and self.name not in project.holders):
            return False
        files = [f for f in project.files if f is self.file or word in f.text] if project else [self.file]
        # forward(None, ...) is what somebody writes who forgot apply, not what a holder of functions is for.
        if any(f"{word}apply" in file.text or f"{word}forward(None" in file.text for file in files):
            return False
        # Whoever derives from it, in any of these files, may be applied.
        if any(
            base.rpartition(".")[2] == self.name for file in files for header in file.headers for base in header.bases
        ):
            return False
        return any(f"{word}{name}(" in file.text for file in files for name in ("forward", "backward"))

    @property
    def is_example(self) -> bool:
        """Written inside a function of a test: it is there to be tested, and may be as odd as the test wants it."""
        return "<locals>" in self.qualname and (self.qualname.startswith("test_") or self.file.is_test)

    def never_runs(self, path: str | None, line: int) -> bool:
        """Does a line stand in a branch of backward that forward's constants rule out?"""
        backward = self.backward
        if backward is None or path != backward.file.path:
            return False
        return any(line in lines for lines in self._never_taken)

    @cached_property
    def _never_taken(self) -> list[range]:
        return never_taken.lines(self)

    @cached_property
    def has_gradient(self) -> bool:
        """Backward exists, does more than raise, and some output is differentiable."""
        backward = self.backward
        if backward is None or backward.raises_only or backward.is_stub:
            return False
        return not roles.all_outputs_marked(self)

    def role_of_saved(self, save: Save, expression: ast.expr) -> roles.SavedRole:
        """Is a saved expression an input, an output, or something in between (which has no graph of its own)?"""
        return roles.of_saved(self, save.method, expression)

    def role_of_value(self, method: Method, expression: ast.expr) -> roles.SavedRole:
        """The same for any expression of forward or setup_context."""
        return roles.of_saved(self, method, expression)

    def input_at(self, index: int | None) -> Param | None:
        """The input that `needs_input_grad[index]` and the gradient at `index` belong to."""
        if index is None or index < 0:
            return None
        return next((p for p in self.inputs if p.index == index and p.kind == "positional"), None)

    def gradients_of(self, index: int) -> list[ast.expr] | None:
        """What backward returns for one input, return by return; None where the source does not say."""
        returns = self.backward.returns if self.backward else []
        found: list[ast.expr] = []
        for item in returns:
            if item.elements is None or index >= len(item.elements):
                return None
            found.append(item.elements[index])
        return found or None

    def gives_gradient(self, index: int) -> bool | None:
        """Does backward return a gradient for this input on some path? None where the source does not say."""
        return gradients.given(self, index)

    def gets_no_gradient(self, index: int) -> bool:
        """Backward returns None for this input on every path."""
        return self.gives_gradient(index) is False

    def owner(self, node: ast.AST) -> FileModel:
        """The file a node of this function or of one of its bases stands in."""
        if node is self.node or node in self.file.parents:
            return self.file
        return next((b.file for b in self._ancestors() if node is b.node or node in b.file.parents), self.file)

    def at(
        self,
        node: ast.AST,
        message: str,
        *,
        advice: str | None = None,
        argument: str | None = None,
        edits: Sequence[Edit | None] = (),
        applicability: Applicability | None = None,
        unsafe: str = "",
        severity: Severity | None = None,
    ) -> Finding:
        """A finding at `node`, with path, position, line and this function's name filled in."""
        return self.owner(node).at(
            node,
            message,
            advice=advice,
            argument=argument,
            function=self.qualname,
            edits=edits,
            applicability=applicability,
            unsafe=unsafe,
            severity=severity,
        )


def from_class(node: ast.ClassDef, file: FileModel, has_setup_context: bool = False) -> FunctionModel:
    """The model of an autograd.Function."""
    found = {n.name: n for n in _functions(node)}
    assigned = _assigned(node)
    for name, value in assigned.items():
        body = file.function_named(value) if value is not None and value not in file.imports.names else None
        if body is not None and name not in found:
            found[name] = body
    model = FunctionModel(node.name, node, file, unseen=frozenset(assigned.keys() - found.keys()))
    new_style = has_setup_context or "setup_context" in found or "setup_context" in assigned
    for name in METHODS:
        if name in found:
            model.methods[name] = method_from(found[name], name, file, new_style)
    return model


def _assigned(node: ast.ClassDef) -> dict[str, str | None]:
    """Methods that the class body takes from elsewhere: `setup_context = shared`, `backward = staticmethod(other)`."""
    found: dict[str, str | None] = {}
    for statement in node.body:
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id in METHODS and isinstance(statement, ast.Assign):
                value = statement.value
                if isinstance(value, ast.Call) and len(value.args) == 1:
                    value = value.args[0]
                found[target.id] = value.id if isinstance(value, ast.Name) else None
    return found


def _functions(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement
        elif isinstance(statement, (ast.If, ast.Try)):
            yield from (s for s in nodes_under(statement) if isinstance(s, ast.FunctionDef) and s.name in METHODS)


def method_from(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, file: FileModel, new_style: bool) -> Method:
    """The Method `name` of an autograd.Function; `new_style`: its forward takes no ctx, setup_context does."""
    decorators = decorator_names(node, file)
    binder: Binder = "instance"
    if "staticmethod" in decorators:
        binder = "static"
    elif "classmethod" in decorators:
        binder = "class"
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    # A static method may be handed its class as well: `forward(cls, ctx, x)`, called through super().
    skip = 1 if binder == "class" or (names[:1] in (["self"], ["cls"]) and names[1:2] == ["ctx"]) else 0
    takes_ctx = name not in ("forward", "vmap") or not new_style or names[skip : skip + 1] == ["ctx"]
    takes_ctx = takes_ctx and name != "vmap" and len(names) > skip
    ctx = names[skip] if takes_ctx else None
    wanted: dict[str, tuple[Role, ...] | Role] = {
        "forward": "input",
        "setup_context": ("inputs", "output"),
        "backward": "grad_output",
        "vjp": "grad_output",
    }
    params = read_params(node, skip + (1 if ctx else 0), wanted.get(name, "other"), file)
    return Method(name, node, file, binder, ctx, params, decorators)


def decorator_names(node: ast.FunctionDef | ast.AsyncFunctionDef, file: FileModel) -> tuple[str, ...]:
    """Dotted names of decorators, calls included: `@custom_fwd(device_type="cuda")` is `torch.amp.custom_fwd`."""
    plain = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return tuple(name for name in map(file.dotted, plain) if name)
