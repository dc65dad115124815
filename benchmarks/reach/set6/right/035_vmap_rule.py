import torch


class OuterUpdate(torch.autograd.Function):
    """m + rate * u v^T, with a vmap rule made by PyTorch."""

    generate_vmap_rule = True

    @staticmethod
    def forward(m, u, v, rate):
        if any(t.is_complex() for t in (m, u, v)):
            raise ValueError("complex numbers are not supported")
        if m.dim() != 2 or m.shape != (u.shape[0], v.shape[0]) or u.dim() != 1 or v.dim() != 1:
            raise ValueError("m (r, c), u (r,), v (c,)")
        return m + rate * torch.outer(u, v)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, u, v, rate = inputs
        ctx.save_for_backward(u, v)
        ctx.rate = rate

    @staticmethod
    def backward(ctx, g):
        u, v = ctx.saved_tensors
        return g, ctx.rate * (g @ v), ctx.rate * (u @ g), None


def example():
    torch.manual_seed(0)
    return (*(torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((2, 3), (2,), (3,))), 0.5)


gradsmith_inputs = {"OuterUpdate": example}
