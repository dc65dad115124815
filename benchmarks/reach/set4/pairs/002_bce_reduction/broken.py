import torch
import torch.nn.functional as F


class WeightedBCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, pos_weight=1.0, reduction="mean"):
        ctx.save_for_backward(logits, target)
        ctx.pos_weight, ctx.reduction = pos_weight, reduction
        loss = -(pos_weight * target * F.logsigmoid(logits) + (1 - target) * F.logsigmoid(-logits))
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        p = torch.sigmoid(logits)
        g = (1 - target) * p - ctx.pos_weight * target * (1 - p)
        if ctx.reduction != "sum":
            g = g / g.numel()
        return grad * g, None, None, None


gradsmith_inputs = {"WeightedBCE": lambda: (torch.randn(6, requires_grad=True), torch.tensor([0., 1., 1., 0., 0., 1.]),)}
