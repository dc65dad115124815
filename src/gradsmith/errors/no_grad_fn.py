"""Nothing that the loss was made of requires grad

Cause
-----
There is no graph to go back through. Either no input has `requires_grad=True`, or the graph was cut: by
`torch.no_grad()`, `.detach()`, `.data`, `.item()`, NumPy, an integer or bool result (`argmax`, `round().long()`), or
because the code runs inside a `backward` or `forward` of a Function, where gradients are off.

Remedy
------
Follow the loss back until a tensor has no `grad_fn`; the step before it cut the graph. Inside a backward, wrap the
part that is differentiated in `torch.enable_grad()`, on a detached copy that requires grad.
"""

from __future__ import annotations

WORDINGS = ("element ... of tensors does not require grad and does not have a grad_fn",)
RULES = ("GS224", "GS114", "GS230")
BAD = """
import torch
x = torch.randn(3, requires_grad=True)
y = torch.tensor(x.detach().numpy() ** 2)
y.sum().backward()
"""
GOOD = """
import torch
x = torch.randn(3, requires_grad=True)
y = x**2
y.sum().backward()
"""
