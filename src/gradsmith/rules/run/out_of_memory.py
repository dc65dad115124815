"""The subject used more memory than it may.

What it finds
-------------
The resident memory of the subject's process grew past the limit (`--memory-limit`). Address space that is only
reserved does not count.

Why it matters
--------------
Where memory runs out, the system kills a process of its own choice, and the session or the desktop goes with it.

Known problems
--------------
Memory is sampled from outside every few milliseconds; a very short peak may pass unseen.

References
----------
https://github.com/csuhan/s2anet/issues/115 (a gradcheck that asked for 40 000 GiB)
"""

CODE = "GS004"
SEVERITY = "error"
REFUTES = False
EVENT = "memory"
BAD = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        hoard = [torch.ones(1 << 26) for _ in range(1000)]
        return 2 * x + len(hoard) - 1000

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
