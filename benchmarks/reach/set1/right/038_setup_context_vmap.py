import torch


class SoftThreshold(torch.autograd.Function):
    """sign(x) max(|x| - lam, 0) with a learned threshold lam > 0 (scalar tensor)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, lam):
        return torch.sign(x) * (x.abs() - lam).clamp_min(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, lam = inputs
        ctx.save_for_backward(x, lam)
        ctx.save_for_forward(x, lam)

    @staticmethod
    def backward(ctx, g):
        x, lam = ctx.saved_tensors
        on = (x.abs() > lam).to(g.dtype)
        return g * on, -(g * on * torch.sign(x)).sum()

    @staticmethod
    def jvp(ctx, tx, tlam):
        x, lam = ctx.saved_tensors
        on = (x.abs() > lam).to(x.dtype)
        out = torch.zeros_like(x)
        if tx is not None:
            out = out + tx * on
        if tlam is not None:
            out = out - tlam * on * torch.sign(x)
        return out


gradsmith_inputs = {
    "SoftThreshold": lambda: (torch.randn(4, 3, requires_grad=True), torch.tensor(0.5, requires_grad=True))
}
