"""A user's file, opened as far as it can be: with its package; else alone, with stand-ins; else only what subjects need.

1. The package: the file is imported under its package name, and so are all `__init__.py` above it.
2. The file under its package name: what is above it is not executed; what is missing, or raises, is a stand-in.
3. The class with the names it uses: of the file only those statements are executed; one that raises binds stand-ins.

Of a notebook it is always the third: what defines is executed, what trains is not.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType

from gradsmith.lab.subject.excerpt import excerpt
from gradsmith.lab.subject.importing import ImportFailed, import_file, import_problem, module_missed
from gradsmith.lab.subject.standins import StandInModule, StandIns, stand_in
from gradsmith.source import notebook
from gradsmith.source.loaded import file_named
from gradsmith.source.module_names import package_name

_RETRIES = 60


@dataclass(frozen=True)
class Opening:
    """The module, why it is not simply the one that its package gives, and what was done instead."""

    module: ModuleType
    trouble: str = ""
    instead: str = ""


def open_file(path: Path, stubs: Sequence[str] = (), subjects: Sequence[str] = ()) -> Opening:
    """The module of a file; `subjects` are the qualified names that are wanted of it, none means all of it."""
    home = _home(path.resolve())
    before = set(sys.modules)
    if path.suffix == notebook.ENDING:  # other cells may train for hours
        file_named(str(path.resolve()))
        return Opening(_with_needed_names(path.resolve(), {name.partition(".")[0] for name in subjects})[0])
    try:
        return Opening(import_file(path, stubs))
    except ImportFailed as error:
        first = error
    _forget(before, home)
    last = ""
    names = {name.partition(".")[0] for name in subjects}
    for attempt in (_with_stand_ins, _with_needed_names):
        try:
            module, instead = attempt(path.resolve(), names)
        except ImportFailed as error:
            last = str(error)
            _forget(before, home)
            continue
        return Opening(module, str(first), instead)
    raise ImportFailed(f"{first}; and without its package: {last}") if names and last != str(first) else first


def _with_stand_ins(path: Path, names: set[str]) -> tuple[ModuleType, str]:
    """Imported again and again, each time with one more stand-in, so that an import that is guarded stays missing."""
    root, name = package_name(path)
    missing = _Missing(root, name)
    home = _home(path)
    before = set(sys.modules)
    for _ in range(_RETRIES):
        with _bare_packages(root, name, missing):
            try:
                module = importlib.import_module(name)
            except BaseException as error:  # top-level code may raise anything, SystemExit included
                if isinstance(error, KeyboardInterrupt):
                    raise
                if not missing.noted(error):
                    raise ImportFailed(import_problem(error, path)) from error
                _forget(before, home)
                continue
        if all(hasattr(module, wanted) for wanted in names):
            alone = " without running the __init__.py of its package" if "." in name else ""
            return module, f"gradsmith imported the file{alone}{missing.words}"
        break
    raise ImportFailed(f"{path.name} does not define what is wanted of it")


def _with_needed_names(path: Path, names: set[str]) -> tuple[ModuleType, str]:
    if not names:
        raise ImportFailed("no class is wanted of it")
    root, name = package_name(path)
    missing = _Missing(root, name)
    with _bare_packages(root, name, missing):
        module, replaced = excerpt(path, name, names)
    return module, f"gradsmith ran only {', '.join(sorted(names))} and the names it uses{_replaced(replaced)}"


def _replaced(names: Sequence[str]) -> str:
    return f", with a stand-in for {', '.join(names)} that raises if it is used" if names else ""


class _Missing:
    """What a file needs and does not find: modules, neighbours that raise, names that an `__init__.py` would define."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.modules = StandIns()
        self.names: dict[tuple[str, str], str] = {}

    @property
    def words(self) -> str:
        told = [*self.modules.why, *(f"{module}.{name}" for module, name in self.names)]
        return _replaced(told)

    def noted(self, error: BaseException) -> bool:
        """Whether one more stand-in may help."""
        error = module_missed(error) or error
        if isinstance(error, ModuleNotFoundError) and error.name and error.name not in self.modules.why:
            top = error.name.partition(".")[0]
            own = top == self.name.partition(".")[0] or top in sys.modules
            self.modules.why[error.name if own else top] = f"{error.name} is not installed"
            return True
        if isinstance(error, ImportError) and error.name and str(error).startswith("cannot import name"):
            place = (error.name, str(error).split("'")[1])  # Python 3.12 has it as `name_from`
            new = place not in self.names
            self.names[place] = f"{place[0]} does not define it where its package is not imported"
            return new
        neighbour = _neighbour(error.__traceback__, self.root)
        if neighbour is None or neighbour in (self.name, *self.modules.why):
            return False
        self.modules.why[neighbour] = f"importing it raises {type(error).__name__}: {error}"
        return True


def _neighbour(trace: TracebackType | None, root: Path) -> str | None:
    """The innermost module under `root` whose top level was being executed."""
    found = None
    while trace is not None:
        code, names = trace.tb_frame.f_code, trace.tb_frame.f_globals
        if code.co_name == "<module>" and Path(code.co_filename).is_relative_to(root):
            found = names.get("__name__")
        trace = trace.tb_next
    return found


class _Bare(ModuleType):
    """A package whose `__init__.py` was not executed."""

    names: dict[tuple[str, str], str]

    def __getattr__(self, name: str) -> object:
        why = self.names.get((self.__name__, name))
        if why is None:
            raise AttributeError(name)
        return stand_in(f"{self.__name__}.{name}", why)


@contextmanager
def _bare_packages(root: Path, name: str, missing: _Missing) -> Iterator[None]:
    """The packages above a module, empty but for their folders; whatever it imports later finds the same stand-ins."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    missing.modules.install()
    folder = root
    parts = name.split(".")[:-1]
    for depth, part in enumerate(parts, start=1):
        folder /= part
        package = _Bare(".".join(parts[:depth]))
        package.__path__ = [str(folder)]
        package.names = missing.names
        sys.modules[package.__name__] = package
    yield


def _home(path: Path) -> Path:
    """The folder of the package that a file belongs to, or of a script and its neighbours."""
    root, name = package_name(path)
    return root / name.partition(".")[0] if "." in name else root


def _forget(before: set[str], home: Path) -> None:
    """What a failed import left behind of the user's own files must not be found by the next one.

    Other packages stay: a second sympy beside the first would not know the numbers of the first.
    """
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        own = isinstance(module, (_Bare, StandInModule))
        if own or Path(getattr(module, "__file__", None) or "/").is_relative_to(home):
            sys.modules.pop(name, None)
    importlib.invalidate_caches()
