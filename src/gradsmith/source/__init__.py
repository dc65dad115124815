"""Source text to models: what custom gradients, looping layers and whole files look like to a rule.

Never imports torch.

Rule authors: docs/dev/source_model.md has the vocabulary.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradsmith.source.annotations import Value
    from gradsmith.source.calls import CallSite
    from gradsmith.source.context import AttributeRead, AttributeWrite, ContextUse, Mark, Save, Unpack
    from gradsmith.source.file import FileModel, Place
    from gradsmith.source.flow import Binding
    from gradsmith.source.guards import Guard, needs_indices, not_none
    from gradsmith.source.layer import LayerModel, Loop
    from gradsmith.source.loaded import model_of
    from gradsmith.source.memory import Source, Write
    from gradsmith.source.method import Method, Param
    from gradsmith.source.model import FunctionModel
    from gradsmith.source.project import Project
    from gradsmith.source.returns import Return

__all__ = [
    "AttributeRead",
    "AttributeWrite",
    "Binding",
    "CallSite",
    "ContextUse",
    "FileModel",
    "FunctionModel",
    "Guard",
    "LayerModel",
    "Loop",
    "Mark",
    "Method",
    "Param",
    "Place",
    "Project",
    "Return",
    "Save",
    "Source",
    "Unpack",
    "Value",
    "Write",
    "model_of",
    "needs_indices",
    "not_none",
]

# Each is loaded when it is asked for: a process that only looks for files needs none of them (10 ms).
_STANDS_IN = {
    "AttributeRead": "context",
    "AttributeWrite": "context",
    "Binding": "flow",
    "CallSite": "calls",
    "ContextUse": "context",
    "FileModel": "file",
    "FunctionModel": "model",
    "Guard": "guards",
    "LayerModel": "layer",
    "Loop": "layer",
    "Mark": "context",
    "Method": "method",
    "Param": "method",
    "Place": "file",
    "Project": "project",
    "Return": "returns",
    "Save": "context",
    "Source": "memory",
    "Unpack": "context",
    "Value": "annotations",
    "Write": "memory",
    "model_of": "loaded",
    "needs_indices": "guards",
    "not_none": "guards",
}


def __getattr__(name: str) -> object:
    if name not in _STANDS_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_STANDS_IN[name]}"), name)
    globals()[name] = found
    return found
