import torch

KIND = "the gradient of the second output is not used"
WRONG = [(" + grad_norm.unsqueeze(-1) * x / norm.unsqueeze(-1)", "")]


class NormAndDirection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.pow(2).sum(-1).sqrt()
        unit = x / norm.unsqueeze(-1)
        ctx.save_for_backward(x, norm, unit)
        return unit, norm

    @staticmethod
    def backward(ctx, grad_unit, grad_norm):
        x, norm, unit = ctx.saved_tensors
        inner = (grad_unit * unit).sum(-1, keepdim=True)
        grad_x = (grad_unit - unit * inner) / norm.unsqueeze(-1)
        return grad_x + grad_norm.unsqueeze(-1) * x / norm.unsqueeze(-1)


gradsmith_inputs = {"NormAndDirection": lambda: (torch.randn(5, 3, dtype=torch.float64, requires_grad=True),)}
