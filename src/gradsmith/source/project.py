"""Project: several files together, so that a Function whose base class lives in another file is known as one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gradsmith.source import customop, layer, model, modules
from gradsmith.source.file import FileModel
from gradsmith.source.slices import ClassHeader, parse_classes


@dataclass(frozen=True, eq=False)
class _Class:
    file: FileModel
    header: ClassHeader
    bases: list[_Class] = field(default_factory=list)


@dataclass(frozen=True)
class Models:
    """What was found in one file."""

    functions: list[model.FunctionModel] = field(default_factory=list)
    layers: list[layer.LayerModel] = field(default_factory=list)


@dataclass(eq=False)
class Project:
    """Files read together. What a file holds is parsed when somebody asks for it.

    `unparsed` holds the files that were asked for and that Python could not parse, with the error.
    """

    files: list[FileModel] = field(default_factory=list)
    unparsed: dict[FileModel, Exception] = field(default_factory=dict)
    classes: dict[FileModel, list[_Class]] = field(default_factory=dict, repr=False)
    with_functions: frozenset[FileModel] = frozenset()
    with_layers: frozenset[FileModel] = frozenset()
    whole: frozenset[FileModel] = frozenset()
    surrogate_of: Callable[[str], str | None] | None = None  # `package.module.Class` -> the kind the project says it is
    _models: dict[FileModel, Models] = field(default_factory=dict, repr=False)
    _by_class: dict[_Class, model.FunctionModel] = field(default_factory=dict, repr=False)
    _matching: dict[str, list[FileModel]] = field(default_factory=dict, repr=False)
    _mentioning: dict[tuple[str, ...], list[FileModel]] = field(default_factory=dict, repr=False)

    def matching(self, pattern: str, *words: str) -> list[FileModel]:
        """The files that were read and whose text matches the pattern. Looked for once per pattern.

        With `words`, only files that hold one of them are searched: twenty times faster than an expression.
        """
        if pattern not in self._matching:
            search = re.compile(pattern).search
            likely = self.mentioning(*words) if words else self.files
            self._matching[pattern] = [file for file in likely if search(file.text) is not None]
        return self._matching[pattern]

    def mentioning(self, *words: str) -> list[FileModel]:
        """The files that were read and hold one of the words. Looked for once."""
        if words not in self._mentioning:
            self._mentioning[words] = [file for file in self.files if file.mentions(*words)]
        return self._mentioning[words]

    @cached_property
    def holders(self) -> frozenset[str]:
        """The names whose forward or backward somebody calls, in any file: `X` of `X.forward(`."""
        return frozenset().union(*(file.holders for file in self.files))

    @property
    def functions(self) -> Iterator[model.FunctionModel]:
        return (function for file in self.files for function in file.functions)

    def named(self, name: str) -> list[model.FunctionModel]:
        """The custom gradients of that name in any file."""
        return [function for function in self.functions if function.name == name]

    def models_of(self, file: FileModel) -> Models:
        """The models of one file. Files that hold bases of its classes are parsed with it."""
        if file not in self._models:
            together = self._unread_with(file)
            built = [found for one in together for found in self._read(one)]
            for found in built:
                self._by_class[found].bases = [self._by_class[b] for b in found.bases if b in self._by_class]
            _settle_new_style(self._by_class[found] for found in built)
        return self._models[file]

    def _unread_with(self, file: FileModel) -> list[FileModel]:
        needed = [file]
        for one in needed:  # grows while it is walked
            for base in (base for found in self.classes.get(one, ()) for base in found.bases):
                if base.file not in needed and base.file not in self._models:
                    needed.append(base.file)
        return needed

    def _read(self, file: FileModel) -> list[_Class]:
        """Parse a file and build its models; the classes that have one."""
        self._models[file] = models = Models()
        if file.changed:
            return []
        classes = [c for c in self.classes.get(file, ()) if not file.in_docstring(c.header.offset)]
        headers = [c.header for c in classes]
        inside = file.headers if file in self.with_layers else ()
        layers = [h for h in inside if h not in headers and layer.may_loop(file, h) and not file.in_docstring(h.offset)]
        try:
            if file in self.whole:
                assert file.tree
            self._build(file, classes, layers)
            if file in self.with_functions:
                models.functions.extend(customop.custom_ops(file))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.unparsed[file] = error
        return [found for found in classes if found in self._by_class]

    def _build(self, file: FileModel, classes: Sequence[_Class], layers: Sequence[ClassHeader]) -> None:
        wanted = [*(c.header for c in classes), *layers]
        if not wanted:
            return
        tree = file.tree if "tree" in file.__dict__ else parse_classes(file.text, file.lines, wanted)
        nodes = {node.lineno: node for node in _classes(tree)}
        models = self._models[file]
        for found in classes:
            node = nodes.get(found.header.line)
            if node is not None and node.name == found.header.name:
                file.keep_class(node)
                self._by_class[found] = built = model.from_class(node, file)
                models.functions.append(built)
        for header in layers:
            node = nodes.get(header.line)
            if node is not None and node.name == header.name:
                file.keep_class(node)
                models.layers.append(layer.from_class(node, file))


def load(
    files: Sequence[FileModel],
    with_functions: Sequence[FileModel],
    with_layers: Sequence[FileModel] = (),
    whole: Sequence[FileModel] = (),
) -> Project:
    """The files as one project.

    Only `with_functions` and `with_layers` are looked into for classes; files in `whole` are parsed completely, so
    that an error anywhere in them is known.
    """
    classes: dict[FileModel, list[_Class]] = {}
    for found in _function_classes(with_functions):
        classes.setdefault(found.file, []).append(found)
    project = Project(
        list(files),
        classes=classes,
        with_functions=frozenset(with_functions),
        with_layers=frozenset(with_layers),
        whole=frozenset(whole),
    )
    for file in files:
        file.project = project
    return project


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Every class statement, wherever it stands; expressions are not looked into."""
    stack: list[ast.stmt] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ClassDef):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            stack.extend(getattr(node, name, ()))


def _settle_new_style(models: Iterable[model.FunctionModel]) -> None:
    """A setup_context in a base class means that forward takes no ctx here either."""
    for built in models:
        if "forward" in built.methods and "setup_context" not in built.methods and built.method("setup_context"):
            if not isinstance(built.node, ast.ClassDef):
                continue
            again = model.from_class(built.node, built.file, has_setup_context=True)
            built.methods["forward"] = again.methods["forward"]


def _function_classes(files: Sequence[FileModel]) -> list[_Class]:
    """Classes that derive from torch's Function, directly or through others. Cycles of bases do no harm."""
    everything = [_Class(file, header) for file in files for header in file.headers]
    by_name: dict[str, list[_Class]] = {}
    for item in everything:
        by_name.setdefault(item.header.name, []).append(item)
    known = {item: None for item in everything if item.header in item.file.direct_functions}
    waiting = [item for item in everything if item not in known and item.header.bases]
    at_hand = {file.path.replace("\\", "/"): file for file in files}
    grew = True
    while grew:
        grew = False
        names = {item.header.name for item in known}
        for item in list(waiting):
            # Whose base is called like no Function at hand is none; following its imports is what costs.
            likely = [base for base in item.header.bases if _last_name(item.file, base) in names]
            parents = [p for base in likely for p in _parents(item, base, by_name, at_hand) if p in known]
            if parents:
                item.bases.extend(parents)
                known[item] = None
                waiting.remove(item)
                grew = True
    return list(known)


def _last_name(file: FileModel, base: str) -> str:
    """What a base class is called where it stands: `Base` of `ops.Base`, and of `from ops import Base as Other`."""
    return file.imports.dotted(base).rpartition(".")[2]


def _parents(item: _Class, base: str, by_name: dict[str, list[_Class]], at_hand: dict[str, FileModel]) -> list[_Class]:
    """The class that a base name means: one of the same file, or one of the file it is imported from; else nobody knows."""
    candidates = [c for c in by_name.get(_last_name(item.file, base), ()) if c is not item]
    here = [c for c in candidates if c.file is item.file]
    if not candidates:
        return []
    if "." not in base and base not in item.file.imports.names:
        if here:
            return here[-1:]
        asked = [f"{star}.{base}" if not star.endswith(".") else star + base for star in item.file.imports.stars]
    else:
        asked = [item.file.imports.dotted(base)]
    for dotted in asked:
        path = modules.defined_in(item.file, dotted, at_hand)
        found = [c for c in candidates if c.file.path.replace("\\", "/") == path and not c.header.indent]
        if found:
            return found[-1:]
    return []
