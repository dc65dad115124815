"""Built-in: torch.nn.functional.softsign. A C function and its C gradient, called through ctypes.

    y  = x / (1 + |x|)
    dx = g / (1 + |x|)^2

Teaches: C sees an address and a length, and knows no strides: .contiguous() on everything that goes in, grad_output
    above all (the gradient of a sum has stride 0). Keep the Python object alive while C reads from its address. C
    works in double here; results go back in the dtype and to the device they came from.
When not to use it: for speed use torch.utils.cpp_extension or a custom op in C++; ctypes is for a library you only
    have as a binary. Without a C compiler AVAILABLE is False and the Function says so.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TEACHES = "C knows no strides: make everything contiguous, keep it alive, convert back to dtype and device"
BUILTIN = "torch.nn.functional.softsign"
SECOND_ORDER = False
COMPILES = False

SOURCE = """
#include <math.h>
void softsign(long n, const double *x, double *y) {
    for (long i = 0; i < n; ++i) y[i] = x[i] / (1 + fabs(x[i]));
}
void softsign_backward(long n, const double *x, const double *g, double *dx) {
    for (long i = 0; i < n; ++i) dx[i] = g[i] / ((1 + fabs(x[i])) * (1 + fabs(x[i])));
}
"""


def compile_and_load() -> ctypes.CDLL | None:
    """The library, built into a folder that is removed once it is loaded; None without a working compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None or os.name != "posix":
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "softsign.so")
        command = [compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", path]
        try:
            subprocess.run(command, input=SOURCE.encode(), check=True, capture_output=True)
            return ctypes.CDLL(path)
        except (OSError, subprocess.CalledProcessError):
            return None


library = compile_and_load()
AVAILABLE = library is not None


def call(name: str, *tensors: Tensor) -> Tensor:
    """A new tensor like the first, filled by the C function from these tensors."""
    if library is None:
        raise RuntimeError("the C function was not built: install a C compiler (cc) and import this file again")
    arrays = [t.detach().to("cpu", torch.float64).contiguous() for t in tensors]
    result = torch.empty_like(arrays[0])
    addresses = [ctypes.c_void_p(a.data_ptr()) for a in (*arrays, result)]
    getattr(library, name)(ctypes.c_long(result.numel()), *addresses)
    return result.to(tensors[0])


class CSoftsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return call("softsign", x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return call("softsign_backward", x, grad_output)


gradsmith_inputs = (
    {"CSoftsign": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)} if AVAILABLE else {}
)
