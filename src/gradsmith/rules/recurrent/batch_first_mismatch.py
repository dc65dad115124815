"""`batch_first` of a recurrent layer does not fit how its input or output is used

What it finds
-------------
An nn.RNN, nn.LSTM or nn.GRU whose output is read as `out[:, -1]` (last step, batch first) although it was built without
`batch_first=True`, or as `out[-1]` although it was built with it; an initial state whose batch size is taken from
the wrong dimension of the input; and an input whose layout forward itself names otherwise, by unpacking it
(`batch, steps, _ = x.shape`) or in its docstring or a comment (`x: (batch, time, features)`).

Why it matters
--------------
`out[:, -1]` of a time-first output is the last *sample* at every time: the model trains on mixed-up samples and nothing
raises. A state of the wrong batch size raises unless the two sizes happen to be equal.

Known problems
--------------
Only a layer's own module that is called and read in the same method is looked at, and only the last step. Input without a
batch dimension makes `out[-1]` right in both cases.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
Measured on torch 2.13: `nn.LSTM(4, 5)(x)[0][:, -1]` on x of shape (7, 3, 4) has shape (7, 5), not (3, 5), and no error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know
from gradsmith.source.layer import LayerModel, from_class
from gradsmith.source.lexicon import is_a
from gradsmith.source.walk import nodes_under

if TYPE_CHECKING:
    from gradsmith.source import FileModel, Method

CODE = "GS708"
SEVERITY = "warning"
EXPLAINS = ()
FIXABLE = False
TRIGGERS = ("nn.LSTM(", "nn.GRU(", "nn.RNN(")
BESIDE = "def forward("
BAD = """
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.rnn = nn.LSTM(inputs, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


gradsmith_inputs = {"Classifier": lambda: (torch.randn(7, 3, 4, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("nn.LSTM(inputs, hidden)", "nn.LSTM(inputs, hidden, batch_first=True)")
_LAYERS = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


def lint_file(file: FileModel) -> Iterator[Finding]:
    for block in file.blocks_with(*TRIGGERS):
        for node in nodes_under(block):
            if isinstance(node, ast.ClassDef):
                yield from _class(from_class(node, file))


def _class(layer: LayerModel) -> Iterator[Finding]:
    built = {name: value for name, value in layer.attributes.items() if layer.built(name) in _LAYERS}
    orders = {name: order for name, value in built.items() if (order := _batch_first(value)) is not None}
    for method in layer.methods.values():
        if not orders or method.name == "__init__":
            continue
        for node in method.nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
                yield from _last_step(layer, method, node, orders)
            if isinstance(node, ast.Call) and (name := _called(node)) in orders and len(node.args) == 2:
                yield from _state(layer, method, node, orders[str(name)])
            if isinstance(node, ast.Call) and (name := _called(node)) in orders and node.args:
                yield from _named_layout(layer, method, node, str(name), orders[str(name)])


def _batch_first(value: ast.expr) -> bool | None:
    """True, False, or None where the source does not tell."""
    if not isinstance(value, ast.Call) or any(k.arg is None for k in value.keywords) or len(value.args) > 4:
        return None
    given = next((k.value for k in value.keywords if k.arg == "batch_first"), None)
    if given is None:
        return False
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None


def _called(node: ast.expr | None) -> str | None:
    """`rnn` for `self.rnn(...)`."""
    func = node.func if isinstance(node, ast.Call) else None
    own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    return func.attr if own and isinstance(func, ast.Attribute) else None


def _last_step(layer: LayerModel, method: Method, node: ast.Subscript, orders: dict[str, bool]) -> Iterator[Finding]:
    assert isinstance(node.value, ast.Name)
    bindings = method.definitions(node.value)
    if len(bindings) != 1 or bindings[0].how != "unpack" or bindings[0].index != 0:
        return
    name = _called(bindings[0].value)
    if name not in orders or _is_packed(bindings[0].value):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    shown = ast.unparse(node)
    last = [i for i, p in enumerate(parts) if ast.unparse(p) == "-1"]
    whole = all(isinstance(p, ast.Slice) and p.lower is p.upper is None for i, p in enumerate(parts) if i not in last)
    if not whole or len(last) != 1 or last[0] > 1:
        return
    if last[0] == 1 and not orders[name]:
        yield layer.at(
            node,
            f"{layer.name}.{method.name} takes `{shown}` as the last step, but self.{name} was built without batch_first=True: this is "
            "the last sample of the batch, at all time steps.",
            advice=f"Build self.{name} with `batch_first=True` if the input is (batch, time, features), else take `{node.value.id}[-1]`.",
        )
    if last[0] == 0 and orders[name]:
        yield layer.at(
            node,
            f"{layer.name}.{method.name} takes `{shown}`, but self.{name} was built with batch_first=True: this is the last sample "
            "of the batch, not the last step.",
            advice=f"Take `{node.value.id}[:, -1]`.",
        )


def _is_packed(call: ast.expr | None) -> bool:
    return isinstance(call, ast.Call) and "pack" in ast.unparse(call).lower()


def _state(layer: LayerModel, method: Method, node: ast.Call, batch_first: bool) -> Iterator[Finding]:
    """`self.rnn(x, torch.zeros(layers, x.size(d), hidden))`: d must be where x has its batch."""
    x = node.args[0]
    if not isinstance(x, ast.Name) or method.param_of(x) is None:
        return
    given = method.resolve(node.args[1])
    for state in given.elts if isinstance(given, ast.Tuple) else [given]:
        made = method.resolve(state)
        while (
            isinstance(made, ast.Call)
            and isinstance(made.func, ast.Attribute)
            and made.func.attr in ("to", "cuda", "type_as")
        ):
            made = made.func.value
        sizes = made.args if isinstance(made, ast.Call) and method.op(made) in know.CREATION | know.RANDOM else []
        if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple):
            sizes = sizes[0].elts
        if len(sizes) != 3:
            continue
        taken = _dimension_of(method, sizes[1], x.id)
        if taken is not None and taken != (0 if batch_first else 1):
            yield layer.at(
                made,
                f"{layer.name}.{method.name} sizes the state of a layer with batch_first={batch_first} by dimension {taken} of "
                f"'{x.id}', which is time.",
                advice=f"Use `{x.id}.size({0 if batch_first else 1})`, or change batch_first to fit the input.",
            )
            return


def _dimension_of(method: Method, size: ast.expr, name: str) -> int | None:
    """0 for `x.size(0)` and `x.shape[0]`, also through a name."""
    size = method.resolve(size)
    for dimension in (0, 1):
        if ast.unparse(size) in (f"{name}.size({dimension})", f"{name}.shape[{dimension}]"):
            return dimension
    return None


def _named_layout(layer: LayerModel, method: Method, node: ast.Call, name: str, batch_first: bool) -> Iterator[Finding]:
    """The layer gets the very argument whose first two dimensions forward names."""
    x = node.args[0]
    if not isinstance(x, ast.Name) or method.param_of(x) is None or "pack" in ast.unparse(node):
        return
    for first, second, where in _layouts(method, x.id):
        batches = is_a(first, "batch size"), is_a(second, "batch size")
        if batches == (batch_first, not batch_first) or batches[0] == batches[1]:
            continue
        yield layer.at(
            node,
            f"{layer.name}.{method.name} names the dimensions of '{x.id}' ({first}, {second}, ...) in {where}, but self.{name} was built "
            f"with batch_first={batch_first}: it takes '{first}' for the {'batch' if batch_first else 'time'}.",
            advice=f"Build it with `batch_first={not batch_first}`, or transpose '{x.id}' first.",
        )
        return


def _layouts(method: Method, name: str) -> Iterator[tuple[str, str, str]]:
    """The names of the first two dimensions: where they are unpacked, in the docstring, in a comment."""
    for node in method.nodes:
        whole = node.value if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) else None
        if (
            whole is not None
            and ast.unparse(whole) in (f"{name}.shape", f"{name}.size()")
            and isinstance(node, ast.Assign)
        ):
            names = [getattr(e, "id", "") for e in node.targets[0].elts]  # type: ignore[attr-defined]
            if len(names) == 3:
                yield names[0], names[1], "the unpacking of its shape"
    spelled = re.compile(rf"\b{name}\b[^\n(\[]{{0,40}}[(\[]\s*([A-Za-z_]\w*)\s*,\s*([A-Za-z_]\w*)\s*,")
    lines = range(method.node.lineno, (method.node.end_lineno or method.node.lineno) + 1)
    said = [(ast.get_docstring(method.node) or "", "its docstring")]
    # Telling comments from strings costs as much as parsing the file.
    if any("#" in line and spelled.search(line) for line in method.file.lines[lines.start - 1 : lines.stop - 1]):
        said += [(text, "a comment") for line, text in method.file.comment_lines.items() if line in lines]
    for text, where in said:
        for match in spelled.finditer(text):
            yield match[1].lower(), match[2].lower(), where
