"""Built-in: torch.nn.RNN. The tanh RNN as one Function, with backpropagation through time written by hand.

    h_t = tanh(W x_t + b + U h_(t-1))
    e_t = (g_t + e_(t+1) U) * (1 - h_t^2)               (backwards in time; e_(T+1) U counts as 0)
    dx = e W      dW = sum of e_t^T x_t      dU = sum of e_t^T h_(t-1)      db = sum of e_t      dh_0 = e_1 U

Teaches: only the e_t need a loop. Once they are known, every weight gradient is one large product over all steps,
    where autograd adds up T small ones. Saved are inputs and outputs only, so the second derivative is right as well.
When not to use it: for a plain tanh cell nn.RNN is ready; for other cells this is the pattern worth the effort.
"""

from typing import Any

import torch
from torch import Tensor, nn

TEACHES = "loop only over the errors; weight gradients are one large product over all steps"
BUILTIN = "torch.nn.RNN"
SECOND_ORDER = True
COMPILES = True


class TanhRNN(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, h0: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
        if x.dim() != 3:
            raise ValueError(f"x must be time x batch x inputs, not {tuple(x.shape)}")
        h, states = h0, []
        transition = recurrent.t()
        for p in (x @ weight.t() + bias).unbind(0):
            h = torch.tanh(p + h @ transition)
            states.append(h)
        output = torch.stack(states)
        ctx.save_for_backward(x, h0, weight, recurrent, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, h0, weight, recurrent, output = ctx.saved_tensors
        carry, errors = torch.zeros_like(h0), []
        slopes = 1 - output * output
        for g, slope in zip(reversed(grad_output.unbind(0)), reversed(slopes.unbind(0))):
            error = (g + carry) * slope
            carry = error @ recurrent
            errors.append(error)
        e = torch.stack(errors[::-1])
        grad_x = grad_weight = grad_recurrent = grad_bias = None
        grad_h0 = carry if ctx.needs_input_grad[1] else None
        if ctx.needs_input_grad[0]:
            grad_x = e @ weight
        if ctx.needs_input_grad[2]:
            grad_weight = torch.einsum("tbh,tbi->hi", e, x)
        if ctx.needs_input_grad[3]:
            before = torch.cat([h0.unsqueeze(0), output[:-1]])
            grad_recurrent = torch.einsum("tbh,tbk->hk", e, before)
        if ctx.needs_input_grad[4]:
            grad_bias = e.sum((0, 1))
        return grad_x, grad_h0, grad_weight, grad_recurrent, grad_bias


class HandWrittenRNN(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        h0 = x.new_zeros(x.shape[1], self.from_state.out_features)
        bias = self.from_input.bias + self.from_state.bias
        return TanhRNN.apply(x, h0, self.from_input.weight, self.from_state.weight, bias)


gradsmith_inputs = {
    "TanhRNN": lambda: (
        torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 5, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 5, dtype=torch.float64).div(3).requires_grad_(),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    )
}
