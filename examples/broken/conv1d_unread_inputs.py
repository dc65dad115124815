# expect: gradient-shape
import torch
import torch.nn.functional as F


class Conv1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, stride: int):
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return F.conv1d(x, weight, stride=stride)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = F.conv_transpose1d(grad_output, weight, stride=ctx.stride)
        if ctx.needs_input_grad[1]:
            windows = x.unfold(-1, weight.shape[-1], ctx.stride)
            grad_weight = torch.einsum("not,nctk->ock", grad_output, windows)
        return grad_x, grad_weight, None


gradsmith_inputs = {
    "Conv1d": lambda: (
        torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, 3, dtype=torch.float64, requires_grad=True),
        2,
    )
}
