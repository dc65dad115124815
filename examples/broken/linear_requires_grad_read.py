# expect: requires-grad-read
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        weight = weight.contiguous()
        ctx.train_weight = weight.requires_grad
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t() @ x if ctx.train_weight else None
        return grad_x, grad_weight


def tied_weights():
    # the decoder uses the encoder's weight, transposed
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(3, 5, dtype=torch.float64).t().requires_grad_()


gradsmith_inputs = {"Linear": tied_weights}
