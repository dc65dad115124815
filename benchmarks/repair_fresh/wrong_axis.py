import torch

KIND = "the inner product of softmax is taken over the wrong axis"
WRONG = [("(g * p).sum(dim=1, keepdim=True)", "(g * p).sum(dim=-1, keepdim=True)")]


class ChannelSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(x, temperature):
        return torch.softmax(x / temperature, dim=1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.temperature = inputs
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        inner = (g * p).sum(dim=1, keepdim=True)
        return p * (g - inner) / ctx.temperature, None


gradsmith_inputs = {"ChannelSoftmax": lambda: (torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True), 0.5)}
