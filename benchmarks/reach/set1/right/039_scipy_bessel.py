import scipy.special
import torch


class BesselJ1(torch.autograd.Function):
    """J1(x); J1' = J0 - J1 / x, and 1/2 at zero."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.as_tensor(scipy.special.j1(x.detach().numpy()), dtype=x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        safe = torch.where(x == 0, torch.ones_like(x), x)
        ratio = torch.where(x == 0, 0.5 * torch.ones_like(x), BesselJ1.apply(safe) / safe)
        return g * (BesselJ0.apply(x) - ratio)


class BesselJ0(torch.autograd.Function):
    """J0(x) for real x; J0' = -J1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.as_tensor(scipy.special.j0(x.detach().numpy()), dtype=x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g * BesselJ1.apply(x)


gradsmith_inputs = {
    "BesselJ0": lambda: ((5 * torch.rand(6, dtype=torch.float64)).requires_grad_(),),
    "BesselJ1": lambda: ((0.1 + 5 * torch.rand(6, dtype=torch.float64)).requires_grad_(),),
}
