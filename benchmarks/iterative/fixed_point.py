"""The state at rest of a slowly forgetting network, with the gradient of the implicit function theorem."""

import torch


class RestState(torch.autograd.Function):
    """z with z = tanh(z @ weight.T + drive)."""

    @staticmethod
    def forward(ctx, drive, weight):
        z = torch.zeros_like(drive)
        for _ in range(80_000):
            following = torch.tanh(z @ weight.T + drive)
            change = (following - z).abs().max()
            z = following
            if change < 1e-13:
                break
        ctx.save_for_backward(z, weight)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        z, weight = ctx.saved_tensors
        slope = 1 - z * z
        eye = torch.eye(weight.shape[0], dtype=weight.dtype)
        # One system per row: (I - W^T diag(slope)) u = grad_output.
        system = eye - weight.T * slope.unsqueeze(1)
        through = torch.linalg.solve(system, grad_output.unsqueeze(-1)).squeeze(-1) * slope
        return through, through.T @ z


def network():
    weight = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0].mul(0.9991)
    drive = torch.randn(3, 4, dtype=torch.float64).mul(0.004)
    return drive.requires_grad_(), weight.requires_grad_()


gradsmith_inputs = {"RestState": network}
