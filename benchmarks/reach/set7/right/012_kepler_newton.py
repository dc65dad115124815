import torch
from torch.autograd import Function


class EccentricAnomaly(Function):
    """Solves E - e sin(E) = M by Newton's method; derivative by the implicit function theorem."""

    @staticmethod
    def forward(ctx, mean_anomaly, e):
        if mean_anomaly.is_complex() or e.is_complex() or mean_anomaly.shape != e.shape:
            raise ValueError("M and e must be real and of one shape")
        if bool(((e < 0) | (e > 0.97)).any()):
            raise ValueError("0 <= e <= 0.97 is needed")
        big_m, ee = mean_anomaly.double(), e.double()
        lo, hi = big_m - ee - 1e-9, big_m + ee + 1e-9
        for _ in range(60):
            mid = (lo + hi) / 2
            up = mid - ee * mid.sin() < big_m
            lo, hi = torch.where(up, mid, lo), torch.where(up, hi, mid)
        big_e = ((lo + hi) / 2).to(mean_anomaly.dtype)
        ctx.save_for_backward(big_e, e)
        return big_e

    @staticmethod
    def backward(ctx, grad):
        big_e, e = ctx.saved_tensors
        v = grad / (1 - e * torch.cos(big_e))
        return v, v * torch.sin(big_e)


gradsmith_inputs = {
    "EccentricAnomaly": lambda: (torch.randn(5, requires_grad=True), torch.rand(5).mul(0.8).requires_grad_())
}
