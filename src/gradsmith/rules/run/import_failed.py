"""The module could not be imported as it stands, so its Functions were run without it, or linted only.

What it finds
-------------
Importing the file raised: a package that is not installed, a CUDA-only extension, or code at the top level that fails.
The message names the line. Three things are tried, in this order, and the message says which one worked:

1. the package, as Python imports it;
2. the file under its package name: the `__init__.py` above it are not executed, and what is missing is a stand-in;
3. the class with the names it uses: of the file only those statements are executed.

A stand-in can be imported, inherited from and named in an annotation. It raises when it is used, and says which module
it stands for. An import inside `try: ... except ImportError` stays missing, as its author expects.

Why it matters
--------------
What was run is not what your users import. Where none of the three works, nothing of the file was verified, and the
subject says so. Lint results are not affected: they need no import. A package that is missing here is a remark, not a
warning: the file is not at fault.

Known problems
--------------
`--stub NAME` puts a stand-in in the place of a module from the start.
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
