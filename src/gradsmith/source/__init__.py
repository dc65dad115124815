"""Source text to models: what custom gradients, looping layers and whole files look like to a rule.

Never imports torch.

Rule authors: docs/dev/source_model.md has the vocabulary.
"""

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
