"""Packages that bring rules of their own, by the entry point `gradsmith.rules`. Finding them imports none of them.

[project.entry-points."gradsmith.rules"]
acme = "acme.gradsmith_rules"        # `acme` is the family; every module of acme.gradsmith_rules is a rule
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder

from gradsmith.findings import GradsmithError

GROUP = "gradsmith.rules"


@dataclass(frozen=True)
class RulePackage:
    """An entry point, and the distribution that has it."""

    name: str
    module: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    def load(self) -> tuple[str, list[str]]:
        """Import the package: the first line of its docstring, and the full names of the modules that are rules.

        Modules whose names begin with _ are the rules' own helpers.
        """
        package = importlib.import_module(self.module)
        if not hasattr(package, "__path__"):
            raise GradsmithError(f"{self.module} is a module, not a package with one rule in each module")
        names = [item.name for item in pkgutil.iter_modules(package.__path__) if not item.ispkg]
        title = (package.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        return title, [f"{self.module}.{name}" for name in names if not name.startswith("_")]

    def folders(self) -> list[str]:
        """Where its rules stand; found without running any of its code. Nothing where only importing would tell."""
        where: Sequence[str] | None = None
        parts = self.module.split(".")
        for count in range(1, len(parts) + 1):
            try:
                specs = [f.find_spec(".".join(parts[:count]), where) for f in sys.meta_path if hasattr(f, "find_spec")]
                where = list(next(s for s in specs if s is not None).submodule_search_locations or ())
            except (StopIteration, ImportError, KeyError):  # a namespace in a namespace asks its imported parent
                return []
        return list(where or ())


@functools.cache
def installed() -> tuple[RulePackage, ...]:
    """Every entry point of the group, by distribution and name."""
    folders = _searched()
    if not _mentioned(folders):
        return ()
    from importlib.metadata import distributions

    found: dict[str, list[RulePackage]] = {}
    for distribution in distributions(path=folders):
        name = distribution.metadata["Name"] or ""
        if name.lower() not in found:  # the first on the path is the one that is imported
            points = [point for point in distribution.entry_points if point.group == GROUP]
            found[name.lower()] = [RulePackage(p.name, p.value, name, distribution.version) for p in points]
    listed = [package for packages in found.values() for package in packages]
    return tuple(sorted(listed, key=lambda p: (p.distribution.lower(), p.name)))


def _searched() -> list[str]:
    """Where packages are installed. Never the current folder, which `python -m` adds: linting must not run what it lints."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        here = ""
    return [folder for folder in sys.path if folder and os.path.realpath(folder) != here]


def _mentioned(folders: Iterable[str]) -> bool:
    """Whether any package may have such an entry point.

    Most installations have none, and importlib.metadata takes a quarter of lint's start to say so (29 of 110 ms; this: 1).
    """
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True  # packages that are no files
    for folder in folders:
        try:
            names = os.listdir(folder)
        except NotADirectoryError:
            return True  # a zip file, which only importlib.metadata looks into
        except OSError:
            continue
        for name in names:
            if name.lower().endswith(("dist-info", "egg-info")) and _names_the_group(os.path.join(folder, name)):
                return True
    return False


def _names_the_group(metadata: str) -> bool:
    try:
        with open(os.path.join(metadata, "entry_points.txt"), "rb") as stream:
            return GROUP.encode() in stream.read()
    except OSError:
        return False
