import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LogBesselI0(Function):
    """log I0(kappa), the normaliser of a von Mises density, through NumPy. The derivative is I1 / I0."""

    @staticmethod
    def forward(ctx, kappa):
        if not kappa.is_floating_point() or bool((kappa.abs() > 500).any()):
            raise ValueError("real kappa of at most 500 expected")
        k = kappa.detach().double().cpu().numpy()
        ctx.save_for_backward(kappa)
        return torch.as_tensor(np.log(np.i0(k)), dtype=kappa.dtype, device=kappa.device).reshape(kappa.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (kappa,) = ctx.saved_tensors
        k = kappa.double()
        theta = (torch.arange(2000, dtype=torch.float64, device=k.device) + 0.5) * (np.pi / 2000)
        w = torch.exp(k[..., None] * torch.cos(theta) - k[..., None].abs())
        ratio = (w * torch.cos(theta)).sum(-1) / w.sum(-1)
        return grad * ratio.to(grad.dtype)


gradsmith_inputs = {"LogBesselI0": lambda: (torch.rand(6).mul(5).requires_grad_(),)}
