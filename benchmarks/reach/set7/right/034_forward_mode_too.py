import torch
from torch.autograd import Function


class CubeRoot(Function):
    """sign(x) |x|^(1/3) away from zero, with backward, jvp and a generated vmap rule."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        if not x.is_floating_point():
            raise TypeError("real input expected")
        return x.sign() * x.abs().pow(1 / 3)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3 * y * y)

    @staticmethod
    def jvp(ctx, tangent):
        (y,) = ctx.saved_tensors
        return tangent / (3 * y * y)


gradsmith_inputs = {"CubeRoot": lambda: (torch.rand(3, 4).add(0.5).requires_grad_(),)}
