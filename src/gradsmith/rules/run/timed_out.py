"""The subject did not finish in time.

What it finds
-------------
forward or backward was still running when the time limit (`--timeout`) ended.

Why it matters
--------------
A hang in CI costs more than a failure, and nothing was verified.

Known problems
--------------
Time for which other processes have the processor does not count, but only Linux tells how much that is; elsewhere a busy
machine may need a longer limit. Example inputs that are smaller than in training need none.

References
----------
Measured: a fork of a process that had computed hangs for ever in an OpenMP lock, which is how many users meet it
(https://github.com/pytorch/pytorch/issues/17199).
"""

CODE = "GS003"
SEVERITY = "error"
REFUTES = False
EVENT = "time"
BAD = """
import threading

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        threading.Event().wait()
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


gradsmith_inputs = {"Double": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
