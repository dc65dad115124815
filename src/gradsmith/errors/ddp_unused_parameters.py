"""DistributedDataParallel waits for the gradient of a parameter that was not used

Cause
-----
DDP averages gradients as soon as all of them are there. A parameter that the loss does not depend on never gets one. A
custom Function that returns None for a parameter has the same effect.

Remedy
------
Use every parameter, or remove it. Return a tensor of zeros instead of None for a parameter in backward. Where
parameters are skipped on purpose, pass `find_unused_parameters=True`.
"""

from __future__ import annotations

WORDINGS = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss",
    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`",
)
RULES = ("GS213", "GS612")
BAD = """
import tempfile
import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    try:
        net = torch.nn.parallel.DistributedDataParallel(Net())
        for _ in range(2):
            net(torch.randn(1, 2)).sum().backward()
    finally:
        dist.destroy_process_group()
"""
GOOD = """
import tempfile
import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    try:
        net = torch.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
        for _ in range(2):
            net(torch.randn(1, 2)).sum().backward()
    finally:
        dist.destroy_process_group()
"""
