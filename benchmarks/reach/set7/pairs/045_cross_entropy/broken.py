import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CrossEntropy(Function):
    """Mean cross entropy of (N, C) logits."""

    @staticmethod
    def forward(ctx, logits, target):
        if logits.dim() != 2 or not logits.is_floating_point() or target.shape != logits.shape[:1]:
            raise TypeError("real (N, C) logits and (N,) targets expected")
        logp = F.log_softmax(logits, 1)
        ctx.probs, ctx.rows = logp.exp(), torch.arange(logits.size(0), device=logits.device)
        ctx.save_for_backward(target)
        return -logp.gather(1, target[:, None]).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (target,) = ctx.saved_tensors
        grad = ctx.probs
        grad[ctx.rows, target] -= 1
        return grad * (grad_output / target.numel()), None


gradsmith_inputs = {"CrossEntropy": lambda: (torch.randn(5, 3, requires_grad=True), torch.tensor([0, 2, 1, 1, 0]))}
