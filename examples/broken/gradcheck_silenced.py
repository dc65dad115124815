# expect: gradcheck-silenced
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output


def check_square():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    print("gradcheck:", torch.autograd.gradcheck(Square.apply, (x,), raise_exception=False))


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
