import torch

KIND = "backward recomputes a scale without eps"
WRONG = [("torch.rsqrt(variance + ctx.eps)", "torch.rsqrt(variance)")]


class BatchStandardise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps):
        mean = x.mean(0)
        variance = ((x - mean) ** 2).mean(0)
        ctx.save_for_backward(x)
        ctx.eps = eps
        return (x - mean) / torch.sqrt(variance + eps)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        centred = x - x.mean(0)
        variance = (centred**2).mean(0)
        rstd = torch.rsqrt(variance + ctx.eps)
        normal = centred * rstd
        grad = grad_output - grad_output.mean(0) - normal * (grad_output * normal).mean(0)
        return grad * rstd, None


gradsmith_inputs = {"BatchStandardise": lambda: (torch.randn(6, 3, dtype=torch.float64, requires_grad=True), 0.05)}
