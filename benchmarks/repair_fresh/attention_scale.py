import torch

KIND = "attention: the scale is not in the gradient of the scores, and softmax is taken as elementwise"
WRONG = [("ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale", "ds = dp * p * (1 - p)")]


class CausalAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.scale = q.shape[-1] ** -0.5
        scores = (q @ k.transpose(-2, -1)) * ctx.scale
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
        p = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensors
        dv = p.transpose(-2, -1) @ do
        dp = do @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-2, -1) @ q, dv


gradsmith_inputs = {
    "CausalAttention": lambda: tuple(torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
}
