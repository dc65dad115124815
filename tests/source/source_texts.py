"""How the tests of source/ get from a text to a model."""

from __future__ import annotations

import textwrap

from gradsmith.source import FileModel, FunctionModel, Method
from gradsmith.source.project import Project, load

HEADER = "import torch\nfrom torch.autograd import Function\nimport torch.nn.functional as F\n"


def project_of(**files: str) -> Project:
    """A project of several files; `a__b="..."` is the file a/b.py."""
    models = [FileModel(name.replace("__", "/") + ".py", textwrap.dedent(text)) for name, text in files.items()]
    return load(models, models, models)


def functions(text: str) -> list[FunctionModel]:
    return project_of(file=text).files[0].functions


def function(text: str) -> FunctionModel:
    (found,) = functions(text)
    return found


def body(forward: str, backward: str = "return g", signature: str = "x", grads: str = "g") -> FunctionModel:
    """A Function `Fn` with these bodies."""
    lines = [
        HEADER,
        "class Fn(Function):",
        "    @staticmethod",
        f"    def forward(ctx, {signature}):",
        textwrap.indent(textwrap.dedent(forward).strip(), " " * 8),
        "    @staticmethod",
        f"    def backward(ctx, {grads}):",
        textwrap.indent(textwrap.dedent(backward).strip(), " " * 8),
    ]
    return function("\n".join(lines) + "\n")


def method(text: str, signature: str = "x") -> Method:
    """The forward of a Function with this body."""
    found = body(text, signature=signature).forward
    assert found is not None
    return found
