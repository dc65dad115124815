import torch


class MeanBag(torch.autograd.Function):
    """Mean of the embeddings of each bag; offsets[i] is where bag i begins, bags are not empty."""

    @staticmethod
    def forward(ctx, weight, ids, offsets):
        ends = torch.cat([offsets[1:], offsets.new_tensor([ids.numel()])])
        sizes = ends - offsets
        if offsets.numel() == 0 or offsets[0] != 0 or (sizes <= 0).any():
            raise ValueError("offsets must begin with 0 and leave no bag empty")
        if ids.min() < 0 or ids.max() >= weight.shape[0]:
            raise ValueError("id out of range")
        bag = torch.arange(offsets.numel()).repeat_interleave(sizes)
        out = weight.new_zeros(offsets.numel(), weight.shape[1]).index_add(0, bag, weight[ids])
        ctx.rows = weight.shape[0]
        ctx.save_for_backward(ids, bag, sizes)
        return out / sizes[:, None]

    @staticmethod
    def backward(ctx, grad):
        ids, bag, sizes = ctx.saved_tensors
        share = grad / sizes[:, None]
        grad_weight = grad.new_zeros(ctx.rows, grad.shape[1])
        return grad_weight.index_add(0, ids, share[bag]), None, None


def example():
    torch.manual_seed(0)
    weight = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    return weight, torch.tensor([0, 2, 5, 2, 1, 4]), torch.tensor([0, 2, 4])


gradsmith_inputs = {"MeanBag": example}
