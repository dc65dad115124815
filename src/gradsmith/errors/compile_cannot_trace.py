"""torch.compile cannot take this code into one graph

Cause
-----
With `fullgraph=True`, and inside a custom Function, everything must be traceable. An `if` on a tensor's value,
`print`, NumPy without a torch equivalent, or a call into C is not.

Remedy
------
Choose with `torch.where` instead of `if`; move printing out; wrap foreign code in `torch.library.custom_op`. Without
`fullgraph=True` PyTorch falls back to eager mode there.
"""

from __future__ import annotations

WORDINGS = (
    "Dynamo does not know how to trace",
    "Data-dependent branching ... Dynamo does not support tracing dynamic control flow",
)
RULES = ("GS613",)
BAD = """
import torch
torch.compile(lambda x: x * 2 if x.sum() > 0 else x, fullgraph=True, backend="eager")(torch.randn(3))
"""
GOOD = """
import torch
torch.compile(lambda x: torch.where(x.sum() > 0, x * 2, x), fullgraph=True, backend="eager")(torch.randn(3))
"""
