import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class DivideBySigma(Function):
    """w / (u^T w v) with u and v held fixed."""

    @staticmethod
    def forward(ctx, w, u, v):
        if w.dim() != 2 or w.is_complex():
            raise TypeError("w must be a real matrix")
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            raise ValueError("u and v are buffers")
        sigma = torch.dot(u, w @ v)
        ctx.save_for_backward(w, sigma)
        ctx.u, ctx.v = u, v
        return w / sigma

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        w, sigma = ctx.saved_tensors
        along = (grad * w).sum() / sigma.square()
        return grad / sigma - along * torch.outer(ctx.u, ctx.v), None, None


class SpectralLinear(torch.nn.Module):
    def __init__(self, inputs=4, outputs=3):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, inputs))
        self.register_buffer("u", F.normalize(torch.randn(outputs), dim=0))
        self.register_buffer("v", F.normalize(torch.randn(inputs), dim=0))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.v.copy_(F.normalize(self.weight.t() @ self.u, dim=0))
                self.u.copy_(F.normalize(self.weight @ self.v, dim=0))
        return x @ DivideBySigma.apply(self.weight, self.u, self.v).t()


def _inputs():
    w = torch.randn(3, 4, requires_grad=True)
    v = F.normalize(w.detach().t() @ F.normalize(torch.randn(3), dim=0), dim=0)
    return w, F.normalize(w.detach() @ v, dim=0), v


gradsmith_inputs = {"DivideBySigma": _inputs}
