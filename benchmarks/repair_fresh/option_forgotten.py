import torch

KIND = "one value of an option has the gradient of the other"
WRONG = [
    (
        """        if ctx.reduction == "mean":
            grad_output = grad_output / x.numel()
""",
        """        grad_output = grad_output / x.numel()
""",
    )
]


class Charbonnier(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, eps, reduction):
        d = x - y
        ctx.save_for_backward(x, y)
        ctx.eps = eps
        ctx.reduction = reduction
        loss = torch.sqrt(d * d + eps * eps)
        if reduction == "mean":
            return loss.mean()
        return loss.sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        if ctx.reduction == "mean":
            grad_output = grad_output / x.numel()
        d = x - y
        grad = grad_output * d / torch.sqrt(d * d + ctx.eps * ctx.eps)
        return grad, -grad, None, None


def _inputs():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    return x, y, 0.1, "mean"


gradsmith_inputs = {"Charbonnier": _inputs}
ELSEWHERE = [lambda: (*_inputs()[:3], "sum")]
