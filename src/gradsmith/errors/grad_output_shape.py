"""The gradient given to backward does not have the shape of the output

Cause
-----
`y.backward(gradient)` and `torch.autograd.grad(y, x, grad_outputs)` want one gradient of the shape of each output.

Remedy
------
Make it like the output: `torch.ones_like(y)`, or reshape it. Where y is a loss that was meant to be one number, reduce
it first.
"""

from __future__ import annotations

WORDINGS = ("Mismatch in shape: grad_output[...] has a shape of ... and output[...] has a shape of",)
RULES = ()
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
y = x.exp()
y.backward(torch.ones(2))
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
y = x.exp()
y.backward(torch.ones_like(y))
"""
