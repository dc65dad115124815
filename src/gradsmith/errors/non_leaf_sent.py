"""A tensor in the middle of a graph was sent to another process

Cause
-----
A graph cannot cross the border of a process: not through a queue, a DataLoader worker or pickle.

Remedy
------
Send `tensor.detach()`.
"""

from __future__ import annotations

WORDINGS = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process boundaries",
)
RULES = ()
BAD = """
from multiprocessing.reduction import ForkingPickler
import torch
import torch.multiprocessing
ForkingPickler.dumps(torch.randn(3, requires_grad=True).exp())
"""
GOOD = """
from multiprocessing.reduction import ForkingPickler
import torch
import torch.multiprocessing
ForkingPickler.dumps(torch.randn(3, requires_grad=True).exp().detach())
"""
