import torch


class SinCos(torch.autograd.Function):
    """sin(w x) and cos(w x) of real x and a 0-dim real w; gradients that are absent stay absent."""

    @staticmethod
    def forward(ctx, x, w):
        if w.dim() or x.is_complex() or w.is_complex():
            raise ValueError("w 0-dim, real")
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, w)
        return torch.sin(w * x), torch.cos(w * x)

    @staticmethod
    def backward(ctx, gs, gc):
        x, w = ctx.saved_tensors
        if gs is None and gc is None:
            return None, None
        total = 0
        if gs is not None:
            total = total + gs * torch.cos(w * x)
        if gc is not None:
            total = total - gc * torch.sin(w * x)
        return total * w, (total * x).sum()


gradsmith_inputs = {"SinCos": lambda: (torch.randn(4, requires_grad=True), torch.tensor(1.5, requires_grad=True))}
