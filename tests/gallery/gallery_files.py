"""Finds and loads the files of examples/, and what they declare about themselves."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "examples" / "gallery"
BROKEN = ROOT / "examples" / "broken"
DECLARED = re.compile(r"^class (\w+)\(.*#\s*gradsmith:\s*(surrogate\[([\w-]+)\]|approximate)", re.M)


@functools.cache
def load(path: Path) -> ModuleType:
    """The file as a module of its own, imported once per process."""
    name = "_".join(("example", *path.relative_to(ROOT / "examples").with_suffix("").parts))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def gallery_files() -> list[Path]:
    """All of them but kernels, which run in workers only and in float32: tests/kernels holds those to their word."""
    return sorted(path for path in GALLERY.rglob("*.py") if path.parent.name != "kernels")


def broken_files() -> list[Path]:
    return sorted(BROKEN.glob("*.py"))


def expected_rules(path: Path) -> list[str]:
    """The names in the file's `# expect: rule-name` comments."""
    return re.findall(r"#\s*expect:\s*([\w-]+)", path.read_text())


@dataclass(frozen=True)
class Case:
    """One subject of one gallery file under one of its declared configurations."""

    path: Path
    name: str
    number: int
    make: Callable[[], tuple[Any, ...]]

    def __str__(self) -> str:
        return f"{self.path.stem}-{self.name}-{self.number}"

    @property
    def module(self) -> ModuleType:
        return load(self.path)

    @property
    def declared(self) -> str | None:
        """The surrogate kind, "approximate", or None for an exact gradient."""
        for name, what, kind in DECLARED.findall(self.path.read_text()):
            if name == self.name:
                return kind or what
        return None

    @property
    def is_function(self) -> bool:
        subject = getattr(self.module, self.name)
        return isinstance(subject, type) and issubclass(subject, torch.autograd.Function)

    def inputs(self, seed: int = 0) -> tuple[Any, ...]:
        torch.manual_seed(seed)
        return self.make()

    def call(self, *inputs: Any) -> Any:
        """The subject on clones of the inputs, so that in-place Functions find no leaf."""
        subject = getattr(self.module, self.name)
        run = subject.apply if self.is_function else subject
        return run(*(t.clone() if isinstance(t, Tensor) else t for t in inputs))

    def differentiable(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Only those outputs that a gradient can be asked of."""
        outputs = self.call(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(y for y in outputs if y.requires_grad)


def cases() -> Iterator[Case]:
    for path in gallery_files():
        for name, makers in load(path).gradsmith_inputs.items():
            for number, make in enumerate(makers if isinstance(makers, list) else [makers]):
                yield Case(path, name, number, make)


def with_tensors(inputs: tuple[Any, ...], change: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    """The inputs with every tensor that requires grad replaced by a changed leaf."""
    return tuple(
        change(t.detach()).requires_grad_() if isinstance(t, Tensor) and t.requires_grad else t for t in inputs
    )
