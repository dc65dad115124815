"""The subject did not finish in time.

What it finds
-------------
forward or backward was still running when the time limit (`--timeout`) ended. CPU time counts, of the subject's process and of
all that it started; what waits without computing is ended after ten times the limit and 60 s.

Why it matters
--------------
A hang in CI costs more than a failure, and nothing was verified.

Known problems
--------------
Only Linux tells how long another process computed. Elsewhere a hang is ended after ten times the limit and 60 s. Example inputs
that are smaller than in training need no longer limit.

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
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        while x.abs().max() >= 0:  # holds for ever
            pass
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
