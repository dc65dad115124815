import torch


class CosineSimilarity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.is_complex() or b.is_complex():
            raise ValueError("complex numbers are not supported")
        if a.shape != b.shape or a.dim() < 1:
            raise ValueError("a and b must have one shape")
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        if not bool((na > 0).all() and (nb > 0).all()):
            raise ValueError("zero vector")
        ctx.save_for_backward(a, b)
        return (a / na * b / nb).sum(-1)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        ua, ub = a / na, b / nb
        c = (ua * ub).sum(-1, keepdim=True)
        g = g.unsqueeze(-1)
        return g * ub / na, g * (ua - c * ub) / nb


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
            torch.randn(3, 4, dtype=torch.float64, requires_grad=True))


gradsmith_inputs = {"CosineSimilarity": example}
