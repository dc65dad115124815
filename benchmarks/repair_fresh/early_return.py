import torch

KIND = "an early return of backward is wrong, the other is right"
WRONG = [
    (
        "return grad_output.sum_to_size(a.shape), grad_output.sum_to_size(b.shape), None",
        "return grad_output, (grad_output * a).sum_to_size(b.shape), None",
    )
]


class AddOrMultiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, multiply):
        ctx.multiply = multiply
        ctx.save_for_backward(a, b)
        return a * b if multiply else a + b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        if not ctx.multiply:
            return grad_output.sum_to_size(a.shape), grad_output.sum_to_size(b.shape), None
        return (grad_output * b).sum_to_size(a.shape), (grad_output * a).sum_to_size(b.shape), None


def _inputs():
    return (
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 1, dtype=torch.float64, requires_grad=True),
        False,
    )


gradsmith_inputs = {"AddOrMultiply": _inputs}
ELSEWHERE = [lambda: (*_inputs()[:2], True)]
