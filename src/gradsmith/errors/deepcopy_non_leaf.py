"""A tensor in the middle of a graph cannot be copied by deepcopy

Cause
-----
`copy.deepcopy` of a module or object meets a tensor that was computed from others, such as an attribute `self.scale =
nn.Parameter(...) * 2` or a cached result of forward.

Remedy
------
Keep parameters as attributes and compute from them in forward. Store caches detached, or delete them before the copy.
"""

from __future__ import annotations

WORDINGS = ("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment",)
RULES = ("GS611",)
BAD = """
import copy
import torch
weight = torch.ones(3, requires_grad=True)
copy.deepcopy({"scale": weight * 2})
"""
GOOD = """
import copy
import torch
weight = torch.ones(3, requires_grad=True)
copy.deepcopy({"scale": (weight * 2).detach()})
"""
