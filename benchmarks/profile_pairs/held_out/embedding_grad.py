"""The gradient of an embedding, added row by row, against index_add_."""

import torch

CAUSES = ("element-loop",)


class SlowEmbedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, indices):
        ctx.save_for_backward(indices)
        ctx.rows = weight.shape[0]
        return weight[indices]

    @staticmethod
    def backward(ctx, grad_output):
        (indices,) = ctx.saved_tensors
        grad_weight = grad_output.new_zeros(ctx.rows, grad_output.shape[1])
        for i, index in enumerate(indices):  # <-
            grad_weight[index] += grad_output[i]  # <-
        return grad_weight, None


class FastEmbedding(SlowEmbedding):
    @staticmethod
    def backward(ctx, grad_output):
        (indices,) = ctx.saved_tensors
        grad_weight = grad_output.new_zeros(ctx.rows, grad_output.shape[1])
        return grad_weight.index_add_(0, indices, grad_output), None


slow, fast = SlowEmbedding, FastEmbedding


def inputs():
    return torch.randn(50, 16, requires_grad=True), torch.arange(300) * 7 % 50
