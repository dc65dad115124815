import torch


class PickColumns(torch.autograd.Function):
    """Selected scores (B,) of (B, V) at ids (B,) in [0, V), int32 or int64."""

    @staticmethod
    def forward(ctx, scores, ids):
        rows = torch.arange(scores.shape[0])
        ctx.save_for_backward(ids)
        ctx.shape = scores.shape
        return scores[rows, ids]

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        hot = torch.nn.functional.one_hot(ids, ctx.shape[1])
        return hot.to(g.dtype) * g.unsqueeze(1), None


gradsmith_inputs = {"PickColumns": lambda: (torch.randn(4, 6, requires_grad=True), torch.randint(0, 6, (4,)))}
