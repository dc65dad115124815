import torch

KIND = "divides by the number of elements, not of kept ones"
WRONG = [("mask * mask / ctx.count", "mask * mask / prediction.numel()")]


class MaskedMSE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prediction, target, mask):
        difference = (prediction - target) * mask
        ctx.count = mask.sum().clamp(min=1)
        ctx.save_for_backward(prediction, target, mask)
        return (difference * difference).sum() / ctx.count

    @staticmethod
    def backward(ctx, grad_output):
        prediction, target, mask = ctx.saved_tensors
        grad = grad_output * 2 * (prediction - target) * mask * mask / ctx.count
        return grad, None, None


def _inputs():
    prediction = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    return prediction, torch.randn(4, 5, dtype=torch.float64), (torch.rand(4, 5) > 0.3).double()


gradsmith_inputs = {"MaskedMSE": _inputs}
