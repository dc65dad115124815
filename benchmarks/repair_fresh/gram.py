import torch

KIND = "an input that is used twice gets the gradient of one use"
WRONG = [("(grad_output + grad_output.mT) @ x", "grad_output @ x")]


class Gram(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x.mT / x.shape[-1]

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output + grad_output.mT) @ x / x.shape[-1]


gradsmith_inputs = {"Gram": lambda: (torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True),)}
