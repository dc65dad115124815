"""The user's Function that a traceback names, and what gradsmith says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec

from gradsmith.explaining.pasted import Pasted
from gradsmith.findings import Report
from gradsmith.linting import lint, lint_source
from gradsmith.source.loaded import file_named
from gradsmith.source.model import FunctionModel


@dataclass(frozen=True)
class Named:
    """A Function in a file or a notebook cell."""

    model: FunctionModel

    @property
    def target(self) -> str:
        """`file.py::Name`, as `gradsmith check` takes it."""
        return f"{self.model.file.path}::{self.model.qualname}"

    def examined(self, *, check: bool) -> Report:
        """Lint of this Function alone; and a check of it, in a process of its own."""
        if check and self.model.file.path.endswith(".py") and find_spec("torch") is not None:
            from gradsmith.checking.paths import check_paths

            return check_paths(self.target)
        file = self.model.file
        whole = lint([file.path]) if file.path.endswith(".py") else lint_source(file.text, path=file.path)
        own = [
            f for f in whole.findings if f.function and f.function.split(".")[0] == self.model.qualname.split(".")[0]
        ]
        return replace(whole, findings=own, functions=1, files=1)


def function_in(pasted: Pasted) -> Named | None:
    """The Function that the message names, or in which the traceback ends; None where it names none of the user's."""
    models = list(_models(pasted))
    for name in pasted.functions:
        if hit := next((model for model in models if model.name == name), None):
            return Named(hit)
    for frame in reversed(pasted.frames):
        for model in models:
            last = getattr(model.node, "end_lineno", None) or model.node.lineno
            if model.file.path == frame.path and model.node.lineno <= frame.line <= last:
                return Named(model)
    return None


def _models(pasted: Pasted) -> Iterator[FunctionModel]:
    """Functions in the files of the traceback; torch's own are not the user's."""
    for path in dict.fromkeys(frame.path for frame in pasted.frames):
        if "site-packages" not in path and (file := file_named(path)) is not None:
            yield from file.functions
