"""Built-in: torch.func.hessian. The whole Hessian matrix, one backward pass per row.

    H[i, :] = gradient of (gradient of f)[i]

Teaches: the gradient is a vector, so its Jacobian takes one backward per element, over one graph (is_grads_batched
    runs them together under vmap, which a custom Function in f must support). n^2 numbers: for n beyond thousands use
    hvp.
When not to use it: torch.func.hessian uses forward over reverse mode, which is usually faster.
"""

from collections.abc import Callable

import torch
from torch import Tensor

TEACHES = "the Jacobian of the gradient: one row per backward pass, over one retained graph"
BUILTIN = "torch.func.hessian"
SECOND_ORDER = True
COMPILES = False


def hessian(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The Hessian of the scalar function f at the vector x, as a matrix; itself differentiable in x."""
    x = x if x.requires_grad else x.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
        if not gradient.requires_grad:
            return x.new_zeros(x.numel(), x.numel())
        rows = [torch.autograd.grad(g_i, x, create_graph=True, materialize_grads=True)[0] for g_i in gradient.unbind()]
    return torch.stack(rows)


def quartic(x: Tensor) -> Tensor:
    """sum of x^4 / 12 + x_i x_(i+1): its Hessian is diag(x^2) with ones beside the diagonal."""
    return (x**4).sum() / 12 + (x[:-1] * x[1:]).sum()


gradsmith_inputs = {"hessian": lambda: (quartic, torch.randn(5, dtype=torch.float64, requires_grad=True))}
