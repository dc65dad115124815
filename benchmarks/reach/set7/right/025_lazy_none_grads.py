import torch
from torch.autograd import Function


class SinCos(Function):
    """(sin x, cos x); a gradient that did not arrive is None and costs nothing."""

    @staticmethod
    def forward(ctx, x):
        if not x.is_floating_point():
            raise TypeError("real input expected")
        ctx.set_materialize_grads(False)
        s, c = torch.sin(x), torch.cos(x)
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        terms = ([] if gs is None else [gs * c]) + ([] if gc is None else [-gc * s])
        return sum(terms[1:], terms[0]) if terms else None


gradsmith_inputs = {"SinCos": lambda: (torch.randn(3, 4, requires_grad=True),)}
