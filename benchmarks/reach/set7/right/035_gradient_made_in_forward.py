import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class NTXent(Function):
    """Contrastive loss of paired embeddings; the gradient is already there when forward ends."""

    @staticmethod
    def forward(ctx, z1, z2, temperature):
        if z1.shape != z2.shape or z1.dim() != 2 or z1.is_complex() or z2.is_complex() or temperature <= 0:
            raise ValueError("two real (N, D) matrices and a positive temperature expected")
        if bool((z1 == 0).all(1).any() or (z2 == 0).all(1).any()):
            raise ZeroDivisionError("zero embedding")
        with torch.enable_grad():
            a, b = z1.detach().requires_grad_(), z2.detach().requires_grad_()
            logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / temperature
            target = torch.arange(len(a), device=a.device)
            loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
            ctx.save_for_backward(*torch.autograd.grad(loss, (a, b)))
        return loss.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        da, db = ctx.saved_tensors
        return grad * da, grad * db, None


gradsmith_inputs = {
    "NTXent": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True), 0.5)
}
