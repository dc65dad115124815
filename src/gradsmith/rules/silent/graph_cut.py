"""a round trip through NumPy cuts the graph

What it finds
-------------
A module whose forward computes something with its layers, takes it through NumPy and back (`torch.from_numpy(np.log(h.detach()
.numpy()))`), and returns it; and `loss = torch.tensor(loss.item(), requires_grad=True)` followed by `loss.backward()`.

Why it matters
--------------
Autograd sees the result as a constant. The layers before the cut get no gradient through it, or only a part of theirs, and
nothing raises: the loss even goes down if the layers after it can manage. `requires_grad=True` on the result only hides it.

Known problems
--------------
Indices, masks and anything under no_grad or only outside of training are left alone, and so are inputs that no layer has
touched: they are data.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
Measured on torch 2.13: with `h + torch.from_numpy(h.detach().numpy() ** 2)` the gradient of the input is [0.19, 0.82, -0.18]
instead of [0.65, 1.85, 0.76], for one random layer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import Method
from gradsmith.source import knowledge as know
from gradsmith.source.behind import made_of
from gradsmith.source.method import read_params
from gradsmith.source.model import decorator_names
from gradsmith.source.tracked import from_layer, is_module, is_off, operands, parts
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel

CODE = "GS224"
SEVERITY = "warning"
EXPLAINS = ("wrong-gradient", "none-for-tensor", "hidden-parameter")
TRIGGERS = (".numpy()", ".item(), requires_grad=True")
BESIDE = {".numpy()": "def forward("}
BAD = """
import numpy as np
import torch


class LogLinear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        hidden = self.linear(x).square() + 1
        return hidden + torch.from_numpy(np.log(hidden.detach().numpy()))


gradsmith_inputs = {"LogLinear": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("torch.from_numpy(np.log(hidden.detach().numpy()))", "hidden.log()").replace(
    "import numpy as np\n", ""
)


def lint_file(file: FileModel) -> Iterator[Finding]:
    places = [at for at in file.occurrences(".numpy()") if file.stands_in(at, "forward")]
    for block in file.blocks_at(places):
        if isinstance(block, ast.ClassDef) and any(is_module(file, base) for base in block.bases):
            for node in block.body:
                if isinstance(node, ast.FunctionDef) and node.name == "forward":
                    decorators = decorator_names(node, file)
                    method = Method(
                        "forward", node, file, "instance", None, read_params(node, 1, "input", file), decorators
                    )
                    yield from _in_forward(file, block, method)
    for block in file.blocks_with(".item(), requires_grad=True"):
        yield from _rewrapped(file, block)


def _in_forward(file: FileModel, owner: ast.ClassDef, method: Method) -> Iterator[Finding]:
    if method.decorated_with("no_grad", "inference_mode"):
        return
    seen: set[ast.AST] = set()
    for found in method.returns:
        for call in _returned_wraps(method, found.node.value):
            left = _left_at(method, call.args[0]) if call.args else None
            if (
                left is None
                or call in seen
                or is_off(method, left)
                or is_off(method, call)
                or is_off(method, found.node)
            ):
                continue
            seen.add(call)
            yield file.at(
                call,
                f"{owner.name}.forward computes with '{ast.unparse(left)}' in NumPy and returns the result: the gradient through "
                "this NumPy part is missing.",
                advice=_advice(method, call, left),
                function=owner.name,
            )


def _advice(method: Method, call: ast.Call, left: ast.expr) -> str:
    """The operation of torch that NumPy was used for, where it is one that both know by the same name."""
    used = [n for n in nodes_under(call.args[0]) if isinstance(n, ast.Call) and n is not left]
    numpy = [n for n in used if (method.dotted(n.func) or "").startswith(("numpy.", "scipy."))]
    names = [(method.dotted(n.func) or "").rpartition(".")[2] for n in numpy]
    tensor = left
    while (
        isinstance(tensor, ast.Call)
        and isinstance(tensor.func, ast.Attribute)
        and tensor.func.attr in ("detach", "cpu")
    ):
        tensor = tensor.func.value
    wrap = "wrap the NumPy code in a torch.autograd.Function with a backward"
    given = ast.unparse(tensor) if len(numpy) == 1 and len(numpy[0].args) == 1 and not numpy[0].keywords else "..."
    if len(names) == 1 and names[0] in know.TENSOR_OPS:
        return f"Write `torch.{names[0]}({given})`, without detach() and numpy(); or {wrap}."
    return (
        f"Compute with operations of torch on '{ast.unparse(tensor)}' itself, without detach() and numpy(); or {wrap}."
    )


def _returned_wraps(method: Method, node: ast.expr | None) -> list[ast.Call]:
    """Calls of from_numpy and the like that the value is made of, through arithmetic and torch operations only."""

    def called(call: ast.Call) -> str:
        return method.op(call) or (method.dotted(call.func) or "").removeprefix("torch.")

    def into(part: ast.AST) -> list[ast.expr]:
        if not isinstance(part, ast.Call):
            return parts(method, part)
        op = called(part)
        whole = op in know.TENSOR_OPS and not (op in know.TO_INTEGER or op in know.TO_BOOL or op in know.SELECTS)
        return operands(part) if whole and op not in know.FROM_ARRAYS else []

    return [n for n in made_of(method, [node], into) if isinstance(n, ast.Call) and called(n) in know.FROM_ARRAYS]


def _left_at(method: Method, node: ast.expr) -> ast.expr | None:
    """The tensor that was turned into an array, if arithmetic and NumPy are all that happened to it, and a layer made it."""

    def leaves(part: ast.AST) -> ast.expr | None:
        called = part.func if isinstance(part, ast.Call) and not part.args else None
        return called.value if isinstance(called, ast.Attribute) and called.attr == "numpy" else None

    def into(part: ast.AST) -> list[ast.expr]:
        if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)):
            return parts(method, part)
        smooth = part.func.attr not in know.NUMPY_WITHOUT_DERIVATIVE
        ours = smooth and (method.dotted(part.func) or "").startswith(("numpy.", "scipy."))
        return [a for a in part.args if not isinstance(a, ast.Starred)] if ours and leaves(part) is None else []

    tensors = (leaves(part) for part in made_of(method, [node], into))
    return next((t for t in tensors if t is not None and from_layer(method, t)), None)


def _rewrapped(file: FileModel, block: ast.stmt) -> Iterator[Finding]:
    """`loss = torch.tensor(loss.item(), requires_grad=True)`, and then `loss.backward()`."""
    called = {
        n.func.value.id
        for n in nodes_under(block)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "backward"
        and isinstance(n.func.value, ast.Name)
    }
    for node in nodes_under(block):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args):
            continue
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        wraps = file.dotted(node.value.func) == "torch.tensor" and ast.unparse(node.value.args[0]).endswith(".item()")
        if wraps and any(name in called for name in names):
            yield file.at(
                node.value,
                f"'{names[0]}' is made anew from a number, so '{names[0]}.backward()' reaches nothing: no parameter gets a gradient.",
                advice=f"Call backward on the tensor itself, not on `{ast.unparse(node.value)}`.",
                argument=names[0],
            )
