import torch

KIND = "rows with the ignored label get a gradient"
WRONG = [("        grad = grad * keep.unsqueeze(1)\n", "")]


class CrossEntropyIgnoring(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, ignored):
        keep = labels != ignored
        log_p = torch.log_softmax(logits, dim=1)
        picked = log_p.gather(1, labels.clamp(min=0).unsqueeze(1)).squeeze(1)
        count = keep.sum()
        ctx.save_for_backward(log_p, labels, keep, count)
        return -(picked * keep).sum() / count

    @staticmethod
    def backward(ctx, grad_output):
        log_p, labels, keep, count = ctx.saved_tensors
        grad = log_p.exp()
        grad = grad.scatter_add(1, labels.clamp(min=0).unsqueeze(1), -torch.ones_like(grad))
        grad = grad * keep.unsqueeze(1)
        return grad_output * grad / count, None, None


def _inputs():
    return torch.randn(6, 4, dtype=torch.float64, requires_grad=True), torch.tensor([0, 3, -1, 2, 1, -1]), -1


gradsmith_inputs = {"CrossEntropyIgnoring": _inputs}
