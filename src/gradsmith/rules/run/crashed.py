"""The process that ran the subject died.

What it finds
-------------
forward or backward ended the whole process: a segmentation fault in an extension, `os._exit`, or an abort in C++.
Where a signal ended it, the message names the line that was running. Every subject runs in a process of its own, so the
others are still checked. On guessed inputs it is a warning: foreign code may not be made for what was guessed.

Why it matters
--------------
In training the same call takes the whole job down, without a Python traceback.

Known problems
--------------
A process killed by the system for lack of memory looks the same as a crash.

References
----------
https://github.com/pytorch/pytorch/issues/197099 (SIGSEGV for an empty input)
"""

CODE = "GS002"
SEVERITY = "error"
REFUTES = False
EVENT = "crash"
BAD = """
import ctypes

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * len(ctypes.string_at(0))  # reads at address 0

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
