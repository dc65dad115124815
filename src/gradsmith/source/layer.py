"""LayerModel: an nn.Module whose forward loops; what the rules on recurrent layers look at."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gradsmith.findings import Applicability, Edit, Finding, Severity
from gradsmith.source import loop_text, qualnames
from gradsmith.source.file import FileModel
from gradsmith.source.lexicon import is_a
from gradsmith.source.method import Binder, Method, read_params
from gradsmith.source.model import decorator_names
from gradsmith.source.slices import ClassHeader
from gradsmith.source.walk import nodes_under

_LOOP = re.compile(r"^[ \t]+(?:async[ \t]+)?(?:for|while)\b", re.M)
_METHOD = re.compile(r"[ \t]+def[ \t]+(\w+)")


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop. For `for t in range(T)`: `index` is "t" and `length` is `T`; for `for x in xs`: `iterated` is `xs`."""

    node: ast.For | ast.While
    method: Method
    index: str | None
    length: ast.expr | None
    iterated: ast.expr | None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the body."""
        return [node for statement in self.node.body for node in nodes_under(statement)]

    def subscripts(self) -> list[ast.Subscript]:
        """`x[t]`, `x[:, t]`: places in the body that index something with the loop's counter."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Subscript) and self.index is not None:
                names = {n.id for n in nodes_under(node.slice) if isinstance(n, ast.Name)}
                if self.index in names:
                    found.append(node)
        return found


@dataclass(eq=False)
class LayerModel:
    """An nn.Module with a loop in one of its methods. `attributes` are the `self.x = ...` of `__init__`."""

    name: str
    node: ast.ClassDef
    file: FileModel
    methods: dict[str, Method] = field(default_factory=dict)

    @cached_property
    def qualname(self) -> str:
        return qualnames.of_class(self.file, self.node)

    @property
    def forward(self) -> Method | None:
        return self.methods.get("forward")

    @cached_property
    def attributes(self) -> dict[str, ast.expr]:
        init = self.methods.get("__init__")
        out: dict[str, ast.expr] = {}
        for node in init.nodes if init else ():
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                ):
                    value = getattr(node, "value", None)
                    if isinstance(value, ast.expr):
                        out.setdefault(target.attr, value)
        return out

    def built(self, attribute: str) -> str | None:
        """The dotted name of what `self.attribute` was built with: `torch.nn.Linear`."""
        value = self.attributes.get(attribute)
        return self.file.dotted(value.func) if isinstance(value, ast.Call) else None

    @cached_property
    def loops(self) -> list[Loop]:
        """Every loop statement of every method but `__init__`."""
        return [
            read_loop(node, method)
            for method in self.methods.values()
            if method.name != "__init__"
            for node in method.nodes
            if isinstance(node, (ast.For, ast.While))
        ]

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
        """A finding at `node`, with this layer's name."""
        return self.file.at(
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


def read_loop(node: ast.For | ast.While, method: Method) -> Loop:
    """What a loop statement goes through."""
    if isinstance(node, ast.While):
        return Loop(node, method, None, None, None)
    iterated: ast.expr = node.iter
    target = node.target
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
        if iterated.func.id == "enumerate" and iterated.args and isinstance(target, ast.Tuple):
            first = target.elts[0]
            return Loop(node, method, first.id if isinstance(first, ast.Name) else None, None, iterated.args[0])
        if iterated.func.id == "range" and iterated.args and isinstance(target, ast.Name):
            length = iterated.args[0] if len(iterated.args) == 1 else iterated.args[1]
            return Loop(node, method, target.id, length, None)
    return Loop(node, method, None, None, iterated)


def may_loop(file: FileModel, header: ClassHeader) -> bool:
    """Does the class look like an nn.Module that loops on its way forward, in a way that may matter? (By pattern: parsing
    comes after.)"""
    if not header.bases:
        return False
    resolved = [file.imports.dotted(base) for base in header.bases]
    if not any(base.endswith("Module") or base.startswith("torch.nn.") for base in resolved):
        return False
    following = bisect_right(file.headers, header.offset, key=lambda h: h.offset)
    after = file.headers[following].offset if following < len(file.headers) else len(file.text)
    if not any(file.text.find(word, header.offset, after) >= 0 for word in ("for ", "while ")):
        return False
    methods = list(_methods(file.text, header.offset, after))
    ends = [*(m.start() for m in methods[1:]), after]
    if not any(
        is_a(method[1], "forward method") and _LOOP.search(file.text, method.end(), end) is not None
        for method, end in zip(methods, ends)
    ):
        return False
    return any(m[1] != "__init__" and loop_text.may_matter(file, m.end(), end) for m, end in zip(methods, ends))


def _methods(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    # Looking for the word first is five times as quick as trying the pattern at every line.
    at = text.find("def ", start, end)
    while at >= 0:
        if (match := _METHOD.match(text, text.rfind("\n", 0, at) + 1)) is not None:
            yield match
        at = text.find("def ", at + 4, end)


def from_class(node: ast.ClassDef, file: FileModel) -> LayerModel:
    model = LayerModel(node.name, node, file)
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = decorator_names(statement, file)
            binder: Binder = (
                "static" if "staticmethod" in decorators else "class" if "classmethod" in decorators else "instance"
            )
            skip = 0 if binder == "static" else 1
            params = read_params(statement, skip, "input", file)
            model.methods[statement.name] = Method(statement.name, statement, file, binder, None, params, decorators)
    return model
