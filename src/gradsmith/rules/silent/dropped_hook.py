"""every forward registers one more hook

What it finds
-------------
`self.layer.register_forward_hook(...)` (or another hook of a submodule or parameter) in `forward` of a module, unconditionally
and with its handle thrown away.

Why it matters
--------------
The hook belongs to the submodule, not to the call: each forward adds another, all of them run from then on, and nobody
can remove them. A hook that scales a gradient scales it twice in the second step; memory and time grow with every step.

Known problems
--------------
A hook on a tensor that forward has just computed goes away with the tensor, and is not reported.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
Measured on torch 2.13: after 3 forwards a module has 3 hooks, and its hook ran 6 times.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS227"
SEVERITY = "warning"
TRIGGERS = ("_hook(",)
BESIDE = "def forward("
BAD = """
import torch


class Halved(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        self.linear.weight.register_hook(lambda grad: grad * 0.5)
        return self.linear(x)


gradsmith_inputs = {"Halved": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Halved(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.float64)
        self.handle = self.linear.weight.register_hook(lambda grad: grad * 0.5)

    def forward(self, x):
        return self.linear(x)


gradsmith_inputs = {"Halved": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
_HOOKS = frozenset(
    ("register_hook", "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
     "register_full_backward_pre_hook", "register_backward_hook", "register_post_accumulate_grad_hook")
)  # fmt: skip
_STATEMENT = re.compile(rf"[ \t]+self\.[^=\n]*\.(?:{'|'.join(sorted(_HOOKS))})\(")


def lint_file(file: FileModel) -> Iterator[Finding]:
    starts = (file.text.rfind("\n", 0, at) + 1 for at in file.occurrences("_hook("))
    statements = (start for start in starts if _STATEMENT.match(file.text, start))
    for block in file.blocks_at(statements, containing="def forward("):
        for owner in nodes_under(block):
            if not (isinstance(owner, ast.ClassDef) and any(_is_module(file, base) for base in owner.bases)):
                continue
            for method in owner.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    yield from _in_forward(file, owner, method)


def _is_module(file: FileModel, base: ast.expr) -> bool:
    dotted = file.dotted(base) or ""
    return dotted.endswith("Module") or dotted.startswith("torch.nn.")


def _in_forward(file: FileModel, owner: ast.ClassDef, method: ast.FunctionDef) -> Iterator[Finding]:
    # Statements of the body itself: what stands under a condition may run once only.
    for statement in method.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _HOOKS):
            continue
        receiver = ast.unparse(call.func.value)
        if receiver.startswith("self."):
            yield file.at(
                call,
                f"{owner.name}.forward adds one more hook to '{receiver}' at every call, and never removes it: after 3 calls the "
                "hook runs 3 times. Time and memory grow with every step.",
                advice="Register the hook once, in __init__; or keep the handle that the call returns, and call its remove().",
                function=owner.name,
            )
