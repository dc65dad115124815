"""Import a user's file as its own package would: under its package name, with missing modules stubbed on request."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from gradsmith.findings import GradsmithError
from gradsmith.lab.subject.standins import StandIns
from gradsmith.source.module_names import package_name

# Packages that are worth installing rather than replacing by a stand-in.
_REMEDIES = {"triton": "pip install triton: its kernels are checked without a GPU"}


class ImportFailed(GradsmithError):
    """The user's module could not be imported; the text says at which of its lines."""


def import_file(path: Path, stubs: Sequence[str] = ()) -> ModuleType:
    """The module of `path`. A file inside a package is imported under its package name, so relative imports work."""
    StandIns(stubs).install()
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
        raise ImportFailed(import_problem(error, path)) from error


def import_dotted(name: str, stubs: Sequence[str] = ()) -> ModuleType:
    """A module by its dotted name, from the current folder or the environment."""
    StandIns(stubs).install()
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise ImportFailed(import_problem(error, None)) from error


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


def without_remedy(problem: str) -> str:
    """What `import_problem` says, without what to try: for somebody for whom it went on."""
    return re.sub(r" \((?:try --stub|pip install) [^()]*\)", "", problem)


def module_missed(error: BaseException | None) -> ModuleNotFoundError | None:
    """The module whose absence an import came to grief over, also where its author raises an ImportError in other words."""
    while error is not None and not isinstance(error, ModuleNotFoundError):
        told_anew = isinstance(error, ImportError)
        error = (error.__cause__ or error.__context__) if told_anew else None
    return error


def import_problem(error: BaseException, path: Path | None) -> str:
    """`line 3 imports X, which is not installed`: the last line of the user's own files in the traceback."""
    from gradsmith.findings import one_line

    root = package_name(path)[0] if path is not None else None
    at = "the import"
    error = module_missed(error) or error
    frame = error.__traceback__
    while frame is not None:
        file = Path(frame.tb_frame.f_code.co_filename)
        if file == path:
            at = f"line {frame.tb_lineno}"
        elif path is not None and root is not None and path.parent != root and file.is_relative_to(root):
            at = f"line {frame.tb_lineno} of {file.relative_to(root)}"
        frame = frame.tb_next
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"{at} imports {error.name}, which is not installed ({_REMEDIES.get(package, f'try --stub {package}')})"
    return f"{at} raises {one_line(error)}"
