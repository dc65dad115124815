import torch

KIND = "the gradient of a running sum runs in the same direction"
WRONG = [("g.flip(1).cumsum(1).flip(1)", "g.cumsum(1)")]


class CumulativeLogSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.logsigmoid(x).cumsum(1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.flip(1).cumsum(1).flip(1) * torch.sigmoid(-x)


gradsmith_inputs = {"CumulativeLogSigmoid": lambda: (torch.randn(3, 5, dtype=torch.float64, requires_grad=True),)}
