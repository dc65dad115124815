"""Note every custom Function that really runs, and check it afterwards on what it was really given.

>>> import torch, gradsmith as gs
>>> class Double(torch.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         return 2 * x
...     @staticmethod
...     def backward(ctx, grad_output):
...         return 2 * grad_output
>>> with gs.record() as tape:
...     y = Double.apply(torch.ones(3, 2, requires_grad=True))
>>> [call.name for call in tape.calls]
['Double']
>>> tape.check().ok
True
"""

from __future__ import annotations

from gradsmith.recording.call import Call
from gradsmith.recording.tape import Tape, record

__all__ = ["Call", "Tape", "record"]
