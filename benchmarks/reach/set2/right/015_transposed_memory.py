import torch


class ColumnMajorMatmul(torch.autograd.Function):
    """a @ b, with the result and all gradients stored column-major for a Fortran consumer."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        out = torch.empty_strided((a.size(0), b.size(1)), (1, a.size(0)), dtype=a.dtype)
        out.copy_(a @ b)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return (b @ grad_output.t()).t(), (grad_output.t() @ a).t()


gradsmith_inputs = {
    "ColumnMajorMatmul": lambda: (
        torch.randn(4, 3, dtype=torch.float64).t().contiguous().t().requires_grad_(),
        torch.randn(3, 2, dtype=torch.float64, requires_grad=True),
    )
}
