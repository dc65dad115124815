"""An autotuned kernel gives different results with different configurations.

What it finds
-------------
Forward and backward run with the configuration that has the smallest blocks, and with the one that has the largest. Results that
differ by more than rounding are reported.

Why it matters
--------------
Which configuration is fastest is decided once for each key and machine: a configuration that is only right for some sizes is then
used for others, unless the size is part of the key and unsuitable configurations are pruned.

Known problems
--------------
Two configurations of each kernel are compared, all kernels at once.

References
----------
https://triton-lang.org/main/python-api/generated/triton.autotune.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.kernels import SQUARE, SYMPTOMS

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GSK07"
SEVERITY = "error"
LEVEL = "standard"
EXPLAINS = SYMPTOMS
_TUNED = SQUARE.replace(
    "@triton.jit\ndef square(",
    '@triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64})], key=[])\n@triton.jit\ndef square(',
)
BAD = _TUNED.replace(
    "square[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)", "square[(1,)](x, y, x.numel())"
).replace("y = torch.empty_like(x)", "y = torch.zeros_like(x)")
GOOD = _TUNED.replace(
    "square[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)",
    'square[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())',
)


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.triton.witness import configurations_differ

    for kernels, name in configurations_differ(lab):
        yield lab.finding(
            f"{lab.target.name} computes a different '{name}' with each configuration that triton.autotune may pick for {kernels}.",
            argument=name,
            line=_launch(lab, kernels),
            advice="Compute the grid from the configuration (`lambda meta: ...`), and name every argument that a configuration "
            "depends on in key= or prune_configs_by=.",
        )
        return


def _launch(lab: Lab, kernels: str) -> int | None:
    """The line that launches the first of these kernels, as far as it stands in the Function."""
    import re

    from gradsmith.source.loaded import model_of

    model = model_of(lab.target.function) if lab.target.function is not None else None
    methods = [m for m in (*model.before, model.backward) if m is not None] if model is not None else []
    names = set(re.findall(r"\w+", kernels))
    calls = (call for m in methods for call in m.calls if call.is_kernel and not m.inherited)
    launched = (
        c.node for c in calls if isinstance(c.node.func, ast.Subscript) and ast.unparse(c.node.func.value) in names
    )
    return next((node.lineno for node in launched), None)
