import numpy as np
import torch
from torch.autograd.function import once_differentiable


class NumpyInterp(torch.autograd.Function):
    """np.interp with a fixed table (lists xp ascending, fp); constant outside the table."""

    @staticmethod
    def forward(ctx, x, xp, fp):
        xs, fs = np.asarray(xp, dtype=np.float64), np.asarray(fp, dtype=np.float64)
        v = x.detach().numpy()
        i = np.clip(np.searchsorted(xs, v, side="right") - 1, 0, len(xs) - 2)
        slope = np.diff(fs)[i] / np.diff(xs)[i]
        slope = np.where((v < xs[0]) | (v > xs[-1]), 0.0, slope)
        ctx.save_for_backward(torch.from_numpy(slope).to(x.dtype))
        return torch.from_numpy(np.interp(v, xs, fs)).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0], None, None


gradsmith_inputs = {
    "NumpyInterp": lambda: (
        torch.tensor([-0.5, 0.3, 0.95, 1.6, 2.7], dtype=torch.float64, requires_grad=True),
        [0.0, 0.5, 1.0, 2.0],
        [1.0, 0.2, 0.7, -1.0],
    )
}
