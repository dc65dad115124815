"""A reentrant checkpoint was differentiated with torch.autograd.grad

Cause
-----
With `use_reentrant=True` a checkpoint calls backward inside, which fills `.grad` and cannot serve `autograd.grad` or
`backward(inputs=...)`.

Remedy
------
Pass `use_reentrant=False` to `torch.utils.checkpoint.checkpoint`.
"""

from __future__ import annotations

WORDINGS = (
    "torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward()",
    "Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed to .backward()",
)
RULES = ("GS605",)
BAD = """
import torch
from torch.utils.checkpoint import checkpoint

x = torch.randn(3, requires_grad=True)
torch.autograd.grad(checkpoint(torch.exp, x, use_reentrant=True).sum(), x)
"""
GOOD = """
import torch
from torch.utils.checkpoint import checkpoint

x = torch.randn(3, requires_grad=True)
torch.autograd.grad(checkpoint(torch.exp, x, use_reentrant=False).sum(), x)
"""
