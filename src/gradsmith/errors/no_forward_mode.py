"""Forward-mode differentiation met an operation of PyTorch that does not support it

Cause
-----
`jvp`, `jacfwd` and `hessian` push derivatives forward, and not every operation of PyTorch has a rule for that.

Remedy
------
Use reverse mode (`jacrev`, or `jacrev(jacrev(f))` for a Hessian), or express the operation by others.
"""

from __future__ import annotations

WORDINGS = ("Trying to use forward AD with ... that does not support it because it has not been implemented yet",)
RULES = ()
BAD = """
import torch
x = torch.randn(5, 1, 4)
target, lengths = torch.ones(1, 2, dtype=torch.long), (torch.tensor([5]), torch.tensor([2]))
torch.func.jacfwd(lambda x: torch.nn.functional.ctc_loss(x.log_softmax(-1), target, *lengths))(x)
"""
GOOD = """
import torch
x = torch.randn(5, 1, 4)
target, lengths = torch.ones(1, 2, dtype=torch.long), (torch.tensor([5]), torch.tensor([2]))
torch.func.jacrev(lambda x: torch.nn.functional.ctc_loss(x.log_softmax(-1), target, *lengths))(x)
"""
