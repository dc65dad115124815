"""The module could not be imported, so its Functions were linted but not run.

What it finds
-------------
Importing the file raised: a package that is not installed, a CUDA-only extension, or code at the top level that fails.
The message names the line of your file. Lint results are not affected: they need no import. A package that is missing
here is a warning: it is no fault of the file.

Why it matters
--------------
Nothing of this file was verified. A report that left it out silently would look like a pass.

Known problems
--------------
`--stub NAME` puts a stand-in in the place of a module that is missing here; whatever uses it raises, the rest runs.
Code that trains at import time belongs under `if __name__ == "__main__":`.

References
----------
https://github.com/lmnt-com/haste/issues/27 and many like it: packages that install or import only where there is a GPU.
"""

CODE = "GS001"
SEVERITY = "error"
REFUTES = False
EVENT = "import"
BAD = """
import torch

import a_package_that_only_exists_on_the_cluster


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
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
