"""The source of what is loaded: the model that lint would build, of a live class.

Every question about a subject's source is asked here, whether it stands in a file, in a notebook cell, or in a text that
was compiled under a name which linecache knows. Never imports torch.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import sys
from collections.abc import Iterator
from os.path import exists, isfile
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from gradsmith.source import declared, model, notebook, project, qualnames
from gradsmith.source.file import FileModel
from gradsmith.source.method import Method, Node, read_params
from gradsmith.source.model import FunctionModel
from gradsmith.source.suppressions import DeclaredInComment
from gradsmith.source.walk import once

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# Where torch's Function itself is made: what derives from it begins below.
_ROOTS = frozenset(("builtins", "torch._C", "torch._C._functions", "torch.autograd.function"))
_models: WeakKeyDictionary[type, tuple[list[FileModel | None], FunctionModel]] = WeakKeyDictionary()


def file_named(path: str) -> FileModel | None:
    """The file, notebook cell or other text that was compiled under this name; None where nobody knows its text.

    One model per text: it is built again when the file has changed.
    """
    text = _text(path)
    return _file(path, text) if text else None


def _text(path: str) -> str:
    if isfile(path):
        linecache.checkcache(path)
    elif exists(path):  # a pipe or a device: opening it would wait, or never end
        return ""
    _remember(path)
    return "".join(linecache.getlines(path))


def _remember(path: str) -> None:
    """The code of a notebook under its path, where Python looks for the lines of what was compiled: the file itself is JSON."""
    if not path.endswith(notebook.ENDING) or not isfile(path):
        return
    with open(path, "rb") as stream, contextlib.suppress(ValueError):
        text = notebook.read(stream.read()).text
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


@functools.lru_cache(maxsize=64)
def _file(path: str, text: str) -> FileModel:
    file = FileModel(path, text)
    project.load([file], [file], [file])
    return file


def line_of(path: str | None, number: int | None) -> str:
    """One line of a file or cell; empty where there is none.

    >>> line_of("nowhere.py", 1)
    ''
    """
    if not path or not number:
        return ""
    _remember(path)
    return linecache.getline(path, number)


def cell_named(path: str) -> FileModel | None:
    """The text that was compiled under a name which is no file: a notebook cell, or what was typed at a prompt."""
    return None if isfile(path) else file_named(path)


def file_of(subject: Any) -> FileModel | None:
    """The file that defines a class, a function or a module."""
    for path in _paths(subject):
        if (found := file_named(path)) is not None:
            return found
    return None


def _paths(subject: Any) -> Iterator[str]:
    """Where the source of a subject may stand, the likeliest first."""
    if isinstance(subject, ModuleType):
        yield from _of_module(subject)
        return
    if not isinstance(subject, type):
        code = _code(subject)
        if code is not None:
            linecache.lazycache(code.co_filename, getattr(inspect.unwrap(subject), "__globals__", {}))
            yield code.co_filename
        return
    # A class does not know its file. Its own methods do; in a notebook, where the module has none, nobody else does.
    yield from (code.co_filename for code in _own_codes(subject))
    yield from _of_module(sys.modules.get(subject.__module__))
    inherited = (_code(getattr(subject, name, None)) for name in model.METHODS)
    yield from (code.co_filename for code in inherited if code is not None)


def _of_module(module: ModuleType | None) -> Iterator[str]:
    try:
        path = inspect.getsourcefile(module) if module is not None else None
    except TypeError:  # built in, or the namespace of a session
        return
    if path is not None:
        linecache.lazycache(path, vars(module))
        yield path


def _code(value: Any) -> CodeType | None:
    """The code of a function behind its decorators, as far as they tell what they wrap."""
    try:
        found = getattr(inspect.unwrap(getattr(value, "__func__", value)), "__code__", None)
    except ValueError:  # wraps itself
        return None
    return found if isinstance(found, CodeType) else None


def _own_codes(cls: type) -> Iterator[CodeType]:
    """The code of the functions that stand in the body of a class."""
    for name, value in list(vars(cls).items()):
        code = _code(value)
        inner = inspect.unwrap(getattr(value, "__func__", value)) if code is not None else None
        if code is not None and getattr(inner, "__qualname__", "").endswith(f"{cls.__name__}.{name}"):
            yield code


def place_of(subject: Any) -> tuple[str | None, int | None]:
    """File and first line of a class or function (of a function, its decorators count); None, None where nobody knows."""
    file, node = _definition(subject)
    if node is None or file is None:
        return None, None
    return file.path, node.lineno if isinstance(node, ast.ClassDef) else _first_line(node)


def text_of(subject: Any) -> str:
    """What was written, without the indentation of what stands around it; empty where nobody knows.

    >>> import textwrap
    >>> text_of(textwrap.dedent).splitlines()[0]
    'def dedent(text):'
    """
    if isinstance(subject, ModuleType):
        return file.text if (file := file_of(subject)) is not None else ""
    file, node = _definition(subject)
    if file is None or node is None:
        return ""
    import textwrap  # lint starts without it

    return textwrap.dedent("\n".join([*file.lines[_first_line(node) - 1 : node.end_lineno], ""]))


def code_of(subject: Any) -> str:
    """What the subject does, as code: without comments and docstrings, which say what they like."""
    try:
        tree = ast.parse(text_of(subject))
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def definition_of(function: Any) -> ast.FunctionDef | None:
    """A function's syntax, part of its file's; None for a lambda, and where there is no source.

    >>> import textwrap
    >>> definition_of(textwrap.dedent).args.args[0].arg
    'text'
    """
    node = _definition(function)[1]
    return node if isinstance(node, ast.FunctionDef) else None


def class_definition_of(cls: type) -> ast.ClassDef | None:
    """A class's syntax, part of its file's; None where there is no source."""
    node = _definition(cls)[1]
    return node if isinstance(node, ast.ClassDef) else None


def method_of(function: Any) -> Method | None:
    """The model of any loaded function: all its parameters, `self` too; None where there is no source."""
    file, node = _definition(function)
    if file is None or not isinstance(node, Node):
        return None
    return Method(node.name, node, file, "function", None, read_params(node, 0, "input", file), ())


def op_of(function: Any) -> FunctionModel | Method | None:
    """The model of the custom op that a loaded function is the body of; of the function alone where no gradient is registered."""
    method = method_of(function)
    if method is None:
        return None
    ops = [each for each in method.file.functions if each.kind == "custom_op" and each.forward is not None]
    return next((op for op in ops if op.forward and op.forward.node.lineno == method.node.lineno), method)


def model_of(cls: type) -> FunctionModel | None:
    """The model of a live Function class, as lint builds it, with the bases that it really has; None without source.

    A method that stands outside the class (`backward = staticmethod(helper)`) is found as well, which lint cannot do.
    """
    if cls.__module__ in _ROOTS:
        return None
    files = [file_of(each) for each in cls.__mro__ if each.__module__ not in _ROOTS]
    known = _models.get(cls)
    if known is not None and known[0] == files:
        return known[1]
    found = _built(cls)
    if found is not None:
        _models[cls] = files, found
    return found


def _built(cls: type) -> FunctionModel | None:
    file, node = _definition(cls)
    if file is None or not isinstance(node, ast.ClassDef):
        return None
    bases = [base for each in cls.__bases__ if (base := model_of(each)) is not None]
    new_style = any(base.setup_context is not None for base in bases)
    found = model.from_class(node, file, has_setup_context=new_style)
    found.bases = bases
    for name in model.METHODS:
        value = vars(cls).get(name)
        elsewhere, written = _definition(value) if name not in found.methods and value is not None else (None, None)
        if elsewhere is not None and isinstance(written, Node):
            takes_no_ctx = new_style or "setup_context" in vars(cls)
            found.methods[name] = model.method_from(written, name, elsewhere, takes_no_ctx)
    return found


def declared_at(part: Any) -> DeclaredInComment | None:
    """What the source declares about the gradient of a loaded class, or of a function of a custom op, itself."""
    if isinstance(part, type):
        return found.own_declaration if (found := model_of(part)) is not None else None
    file, node = _definition(part) if inspect.isfunction(part) else (None, None)
    return declared.written_at(file, node) if file is not None and isinstance(node, Node) else None


def assumed_at(part: Any) -> list[str]:
    """What comments in the source of a loaded class or function say always holds."""
    file, node = _definition(part) if isinstance(part, type) or inspect.isfunction(part) else (None, None)
    return declared.assumed_at(file, node) if file is not None and isinstance(node, declared.Definition) else []


def _definition(subject: Any) -> tuple[FileModel | None, ast.stmt | None]:
    """The file of a class or function, and its statement there: of a lambda, the statement it is part of."""
    try:
        for path in _paths(subject) if not isinstance(subject, ModuleType) else ():
            file = file_named(path)
            found = (
                None if file is None else _class_in(file, subject) if isinstance(subject, type) else _in(file, subject)
            )
            if found is not None:
                return file, found
    except _UNREADABLE:  # the file is being edited
        pass
    return None, None


def _class_in(file: FileModel, cls: type) -> ast.ClassDef | None:
    """Of several classes of one name the one that holds the loaded methods, as far as Python knows, else the last."""
    name = cls.__qualname__.rpartition(".")[2]
    same = [node for node in _definitions(file) if isinstance(node, ast.ClassDef) and node.name == name]
    lines = [code.co_firstlineno for code in _own_codes(cls) if code.co_filename == file.path]
    fitting = [node for node in same if any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)]
    named = [node for node in same if qualnames.of_class(file, node) == cls.__qualname__]
    both = [node for node in named if node in fitting]
    return next(iter(both or named[::-1] or fitting), None)


def _in(file: FileModel, function: Any) -> ast.stmt | None:
    code = _code(function)
    if code is None:
        return None
    if code.co_name == "<lambda>":
        around = [n for n in _statements(file) if n.lineno <= code.co_firstlineno <= (n.end_lineno or n.lineno)]
        return around[-1] if around else None
    here = [node for node in _definitions(file) if _first_line(node) == code.co_firstlineno]
    return next((node for node in here if getattr(node, "name", "") == code.co_name), None)


@once
def _statements(file: FileModel) -> list[ast.stmt]:
    return [node for node in ast.walk(file.tree) if isinstance(node, ast.stmt)]


@once
def _definitions(file: FileModel) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in _statements(file) if isinstance(node, kinds)]


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])
