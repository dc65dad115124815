import torch


class ComplexGain(torch.autograd.Function):
    """Elementwise product of two complex tensors of one shape (equaliser taps)."""

    @staticmethod
    def forward(ctx, z, w):
        if not (z.is_complex() and w.is_complex()) or z.shape != w.shape:
            raise ValueError("two complex tensors of one shape")
        ctx.save_for_backward(z, w)
        return z * w

    @staticmethod
    def backward(ctx, grad):
        z, w = ctx.saved_tensors
        return grad * w.conj(), grad * z.conj()


def example():
    torch.manual_seed(0)
    z = torch.randn(4, dtype=torch.complex128, requires_grad=True)
    w = torch.ones(4, dtype=torch.complex128, requires_grad=True)
    return z, w


gradsmith_inputs = {"ComplexGain": example}
