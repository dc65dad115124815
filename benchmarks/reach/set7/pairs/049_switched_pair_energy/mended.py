import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SwitchedLennardJones(Function):
    """Pair energies 4 (r^-12 - r^-6) S(r); S falls smoothly from 1 at r_on to 0 at r_cut."""

    @staticmethod
    def forward(ctx, r, r_on, r_cut):
        if r.is_complex() or bool((r <= 0).any()):
            raise ValueError("distances must be positive")
        if not 0 < r_on < r_cut:
            raise ValueError("0 < r_on < r_cut is needed")
        ctx.save_for_backward(r)
        ctx.range = r_on, r_cut
        t = ((r - r_on) / (r_cut - r_on)).clamp(0, 1)
        return 4 * (r**-12 - r**-6) * (1 - 10 * t**3 + 15 * t**4 - 6 * t**5)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (r,) = ctx.saved_tensors
        r_on, r_cut = ctx.range
        t = ((r - r_on) / (r_cut - r_on)).clamp(0, 1)
        switch = 1 - 10 * t**3 + 15 * t**4 - 6 * t**5
        slope = 4 * (-12 * r**-13 + 6 * r**-7) * switch
        slope = slope - 4 * (r**-12 - r**-6) * 30 * (t * (1 - t)) ** 2 / (r_cut - r_on)
        return grad * slope, None, None


gradsmith_inputs = {
    "SwitchedLennardJones": lambda: (torch.tensor([0.9, 1.1, 1.4, 1.7, 2.1, 2.6]).requires_grad_(), 1.2, 2.2)
}
