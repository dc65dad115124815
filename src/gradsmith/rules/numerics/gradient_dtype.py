"""backward returns a gradient in a narrower type than its input.

What it finds
-------------
The raw return values of backward are compared with the inputs of forward, before autograd casts them.

Why it matters
--------------
Autograd casts silently: a float32 gradient for a float64 input, or a bfloat16 gradient for a float32 weight, loses
digits and nothing raises. `torch.zeros(n)` without a dtype is the usual cause. gradcheck's own dtype check cannot see it,
because the cast comes first.

Known problems
--------------
A wider gradient than the input needs (float32 for bfloat16) is not reported; it only costs memory.

References
----------
https://github.com/pytorch/pytorch/issues/54346
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.source import knowledge as know

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS303"
SEVERITY = "warning"
EXPLAINS = ("layout-dependent", "frozen-input")
BAD = """
import torch


class RowMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, index = x.max(dim=1)
        ctx.save_for_backward(index)
        ctx.width = x.shape[1]
        return values

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad = torch.zeros(grad_output.shape[0], ctx.width, device=grad_output.device, dtype=torch.float32)
        return grad.scatter(1, index.unsqueeze(1), grad_output.unsqueeze(1).float())


gradsmith_inputs = {"RowMax": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("dtype=torch.float32", "dtype=grad_output.dtype").replace(".float())", ")")


def probe(lab: Lab) -> Iterator[Finding]:
    import torch
    from torch import Tensor

    from gradsmith.lab.measure.raw import observed_trace, raw_pairs
    from gradsmith.lab.subject.target import short_name

    outputs = {short_name(call.cls): call.outputs for call in observed_trace(lab).forwards}
    for pair in raw_pairs(lab):
        given, returned = pair.given, pair.returned
        if not isinstance(returned, Tensor) or not isinstance(given, Tensor) or not pair.needed:
            continue
        if not (given.is_floating_point() and returned.is_floating_point()):
            continue
        if torch.finfo(returned.dtype).eps > torch.finfo(given.dtype).eps:
            # A forward that returns float32 has lost the digits already: backward only follows it.
            followed = _widest(outputs.get(pair.function, ())) == returned.dtype
            yield lab.finding(
                f"{pair.function}.backward returns a {_short(returned)} gradient for '{pair.name}', which is {_short(given)}: "
                "the gradient has fewer digits than its input.",
                function=pair.function,
                argument=pair.name,
                severity="info" if followed else None,
                advice=_advice(lab if pair.function == lab.target.name else None, pair.name),
                at="gradient",
                evidence={"returned": _short(returned), "expected": _short(given)},
            )


def _advice(lab: Lab | None, name: str) -> str:
    """What makes the dtype in backward, as far as the source shows it, and what to write there."""
    from gradsmith.source.loaded import model_of

    model = model_of(lab.target.function) if lab is not None and lab.target.function is not None else None
    backward = model.backward if model is not None else None
    dtype, written = "that of the input", []
    if model is not None and backward is not None:
        unpacked = {target.id for target in backward.of(ast.Name)}
        dtype = (
            f"{name}.dtype"
            if name in unpacked
            else f"{model.grad_outputs[0].name}.dtype"
            if model.grad_outputs
            else dtype
        )
        for node in backward.nodes:
            cast = node.func if isinstance(node, ast.Call) and not node.args else None
            if isinstance(cast, ast.Attribute) and cast.attr in know.FLOAT_DTYPES:
                written.append((cast.lineno, f"remove `.{cast.attr}()` in line {cast.lineno}"))
            dotted = (backward.dotted(node) or "") if isinstance(node, ast.Attribute) else ""
            if dotted.startswith("torch.") and dotted.removeprefix("torch.") in know.FLOAT_DTYPES:
                line = getattr(node, "lineno", 0)
                written.append((line, f"write `{dtype}` instead of `{dotted}` in line {line}"))
    if not written:
        return f"Compute this gradient in the dtype {dtype}: give it to tensors that backward makes, and do not cast to a shorter one."
    text = ", and ".join(words for _, words in sorted(set(written)))
    return f"{text[0].upper()}{text[1:]}."


def _widest(outputs: Iterable[object]) -> object:
    import torch
    from torch import Tensor

    kinds = [o.dtype for o in outputs if isinstance(o, Tensor) and o.is_floating_point()]
    return min(kinds, key=lambda k: torch.finfo(k).eps, default=None)


def _short(tensor: object) -> str:
    return str(getattr(tensor, "dtype", "")).removeprefix("torch.")
