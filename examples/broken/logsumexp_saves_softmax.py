# expect: intermediate-saved
# expect: nonfinite-gradient
import torch


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        m = x.max(dim=-1, keepdim=True).values
        e = torch.exp(x - m)
        total = e.sum(-1, keepdim=True)
        softmax = e / total
        ctx.save_for_backward(softmax)
        return (m + torch.log(total)).squeeze(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (softmax,) = ctx.saved_tensors
        return grad_output.unsqueeze(-1) * softmax


def masked_rows():
    # the last row is fully masked
    x = torch.randn(3, 4, dtype=torch.float64)
    x[2] = float("-inf")
    return (x.requires_grad_(),)


gradsmith_inputs = {
    "LogSumExp": [lambda: (torch.randn(3, 4, dtype=torch.float64, requires_grad=True),), masked_rows]
}
