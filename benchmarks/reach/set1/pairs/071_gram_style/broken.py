import torch


class GramMatrix(torch.autograd.Function):
    """Gram matrix of features (C, N), divided by N."""

    @staticmethod
    def forward(ctx, feat):
        ctx.save_for_backward(feat)
        return feat @ feat.t() / feat.shape[1]

    @staticmethod
    def backward(ctx, grad):
        (feat,) = ctx.saved_tensors
        return 2 * grad @ feat / feat.shape[1]


gradsmith_inputs = {"GramMatrix": lambda: (torch.randn(3, 6, requires_grad=True),)}
