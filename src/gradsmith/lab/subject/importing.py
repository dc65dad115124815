"""Import a user's file as its own package would: under its package name, with missing modules stubbed on request."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from gradsmith.findings import GradsmithError

# Packages that are worth installing rather than replacing by a stand-in.
_REMEDIES = {"triton": "pip install triton: its kernels are checked without a GPU"}


class ImportFailed(GradsmithError):
    """The user's module could not be imported; the text says at which of its lines."""


def import_file(path: Path, stubs: Sequence[str] = ()) -> ModuleType:
    """The module of `path`. A file inside a package is imported under its package name, so relative imports work."""
    _install_stubs(stubs)
    path = path.resolve()
    root, name = package_name(path)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        if "." in name or (path.name == "__init__.py"):
            return importlib.import_module(name)
        return _load(path, name)
    except BaseException as error:  # top-level code may raise anything, SystemExit included
        if isinstance(error, KeyboardInterrupt):
            raise
        raise ImportFailed(_import_problem(error, path)) from error


def import_dotted(name: str, stubs: Sequence[str] = ()) -> ModuleType:
    """A module by its dotted name, from the current folder or the environment."""
    _install_stubs(stubs)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise ImportFailed(_import_problem(error, None)) from error


def package_name(path: Path) -> tuple[Path, str]:
    """(folder to put on sys.path, dotted module name), by walking up while there is an `__init__.py`.

    >>> package_name(Path("/nowhere/ops.py"))[1]
    'ops'
    """
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _load(path: Path, name: str) -> ModuleType:
    # A plain script keeps its own name unless that would shadow something already imported.
    unique = name if name not in sys.modules and name.isidentifier() else f"gradsmith_user_{name}"
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    spec.loader.exec_module(module)
    return module


def _import_problem(error: BaseException, path: Path | None) -> str:
    """`line 3 imports X, which is not installed`: the last line of the user's own file in the traceback."""
    from gradsmith.findings import one_line

    line = None
    frame = error.__traceback__
    while frame is not None:
        if path is None or frame.tb_frame.f_code.co_filename == str(path):
            line = frame.tb_lineno
        frame = frame.tb_next
    at = f"line {line}" if line and path is not None else "the import"
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"{at} imports {error.name}, which is not installed ({_REMEDIES.get(package, f'try --stub {package}')})"
    return f"{at} raises {one_line(error)}"


class _Stub(ModuleType):
    """Stands in for a module that is not here: importing from it works, using what came from it raises."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stub_value(f"{self.__name__}.{name}")


def _stub_value(dotted: str) -> Any:
    def unusable(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{dotted} is a stand-in (--stub): the real module is not installed")

    return type(dotted.rpartition(".")[2], (), {"__new__": unusable, "__module__": dotted.rpartition(".")[0]})


class _StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule of the stubbed names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if any(fullname == n or fullname.startswith(n + ".") for n in self.names):
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


def _install_stubs(names: Sequence[str]) -> None:
    if names:
        sys.meta_path.insert(0, _StubFinder(names))
