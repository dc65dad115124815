"""Built-in: torch.func.jvp of torch.func.grad, or torch.autograd.functional.hvp. The Hessian times a vector.

    H v = gradient of <gradient of f, v>

Teaches: two backward passes, and never a matrix: the cost is a few evaluations of f whatever n is. create_graph=True
    is what makes the first gradient differentiable. The gradient of a linear f has no graph left: its Hessian is
    zero, and materialize_grads turns any None into the zeros it stands for.
When not to use it: for the whole Hessian of few variables see hessian.py.
"""

from collections.abc import Callable

import torch
from torch import Tensor

TEACHES = "differentiate the product of gradient and vector: two backward passes, no matrix"
BUILTIN = "torch.autograd.functional.hvp"
SECOND_ORDER = True
COMPILES = False


def hvp(f: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> Tensor:
    """The Hessian of the scalar function f at x, times v; itself differentiable in x and v."""
    x = x if x.requires_grad else x.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
        if not gradient.requires_grad:
            return torch.zeros_like(x)
        (product,) = torch.autograd.grad(gradient, x, v, create_graph=True, materialize_grads=True)
    return product


def quartic(x: Tensor) -> Tensor:
    """sum of x^4 / 12 + x_i x_(i+1): its Hessian is diag(x^2) with ones beside the diagonal."""
    return (x**4).sum() / 12 + (x[:-1] * x[1:]).sum()


gradsmith_inputs = {
    "hvp": lambda: (
        quartic,
        torch.randn(5, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}
