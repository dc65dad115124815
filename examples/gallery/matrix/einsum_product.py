"""Built-in: torch.einsum. A product of two tensors by einsum, with the backward einsums derived from the forward one.

    y  = einsum("A,B->Y", a, b)
    da = einsum("Y,B->A", g, b)          db = einsum("A,Y->B", a, g)

Teaches: an einsum is linear in each operand, so its gradient is the einsum with that operand and the output
    exchanged. The rule holds when every index of an operand also stands in the output or in the other operand; an
    index that is only summed (the j of "ij,ik->ik") would have to be spread out again, and is refused here in words.
When not to use it: torch.einsum differentiates itself; derive by hand to fuse, or to choose what is saved.
"""

from typing import Any

import torch
from torch import Tensor

TEACHES = "the gradient of an einsum is the einsum with operand and output exchanged"
BUILTIN = "torch.einsum"
SECOND_ORDER = True
COMPILES = True


class EinsumProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, equation: str) -> Tensor:
        ctx.terms = of_a, of_b, of_y = equation.replace("->", ",").split(",")
        for term, others in ((of_a, of_b + of_y), (of_b, of_a + of_y)):
            if len(set(term)) < len(term) or not set(term) <= set(others):
                raise ValueError(f"{equation!r}: each index of {term!r} must be single, and appear elsewhere too")
        ctx.save_for_backward(a, b)
        return torch.einsum(equation, a, b)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        a, b = ctx.saved_tensors
        of_a, of_b, of_y = ctx.terms
        grad_a = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_a = torch.einsum(f"{of_y},{of_b}->{of_a}", grad_output, b.conj())
        if ctx.needs_input_grad[1]:
            grad_b = torch.einsum(f"{of_a},{of_y}->{of_b}", a.conj(), grad_output)
        return grad_a, grad_b, None


gradsmith_inputs = {
    "EinsumProduct": [
        lambda: (
            torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True),
            "bij,bjk->bik",
        ),
        lambda: (
            torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),
            torch.randn(5, 4, dtype=torch.float64, requires_grad=True),
            "bij,oi->bjo",
        ),
    ]
}
