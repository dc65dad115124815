"""Backward was called a second time on a graph that is gone

Cause
-----
The first backward frees what the graph had saved. A second backward through any part of the same graph, or reading
`saved_tensors` afterwards, finds nothing. Often a hidden state is carried from one training step to the next without
detach.

Remedy
------
Detach what is carried over (`state = state.detach()`), or run forward again. Add losses and call backward once. Only
where one graph is really needed twice, pass `retain_graph=True` to the first call.
"""

from __future__ import annotations

WORDINGS = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed)",
    "Trying to backward through the graph a second time, but the buffers have already been freed. Specify retain_graph=True",
)
RULES = ("GS228",)
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
loss = x.exp().sum()
loss.backward()
loss.backward()
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
for _ in range(2):
    x.exp().sum().backward()
"""
