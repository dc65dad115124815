"""One of several views from unbind, split or chunk was written into

Cause
-----
`unbind`, `split`, `chunk` and loops over a tensor return several views at once. Autograd does not follow writes into
them.

Remedy
------
Write without underscore (`a = a + 1`), or into a clone. To change rows, index the whole tensor: `y[0] += 1`.
"""

from __future__ import annotations

WORDINGS = (
    "is a view and is being modified inplace. This view is the output of a function that returns multiple views",
)
RULES = ()
BAD = """
import torch
first, second = torch.randn(2, 3, requires_grad=True).exp().unbind()
first += 1
"""
GOOD = """
import torch
first, second = torch.randn(2, 3, requires_grad=True).exp().unbind()
first = first + 1
"""
