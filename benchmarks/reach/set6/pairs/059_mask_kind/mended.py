import torch


def _add_mask(scores, mask):
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, float("-inf"))
    return scores + mask


class BiasedSoftmax(torch.autograd.Function):
    """Softmax of scores with a mask: boolean (True takes part, one at least per row) or float (added)."""

    @staticmethod
    def forward(ctx, scores, mask):
        if mask.shape != scores.shape or mask.requires_grad:
            raise ValueError("the mask must have the shape of the scores and takes no gradient")
        if mask.dtype == torch.bool and not bool(mask.any(-1).all()):
            raise ValueError("a row is masked completely")
        if mask.dtype not in (torch.bool, scores.dtype):
            raise ValueError("the mask must be boolean or of the scores' dtype")
        ctx.save_for_backward(scores, mask)
        return torch.softmax(_add_mask(scores, mask), -1)

    @staticmethod
    def backward(ctx, g):
        scores, mask = ctx.saved_tensors
        p = torch.softmax(_add_mask(scores, mask), -1)
        return p * (g - (g * p).sum(-1, keepdim=True)), None


def example():
    torch.manual_seed(0)
    mask = torch.tensor([[True, False, True], [True, True, True]])
    return torch.randn(2, 3, dtype=torch.float64, requires_grad=True), mask


gradsmith_inputs = {"BiasedSoftmax": example}
