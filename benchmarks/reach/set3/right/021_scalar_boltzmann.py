import torch


class Boltzmann(torch.autograd.Function):
    """exp(-energy / temperature) of two 0-dim real tensors; temperature positive."""

    @staticmethod
    def forward(ctx, energy, temperature):
        if energy.dim() or temperature.dim() or energy.is_complex() or not bool(temperature > 0):
            raise ValueError("0-dim tensors, temperature positive")
        y = torch.exp(-energy / temperature)
        ctx.save_for_backward(energy, temperature, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        e, tau, y = ctx.saved_tensors
        return -grad * y / tau, grad * y * e / tau**2


gradsmith_inputs = {
    "Boltzmann": lambda: (torch.tensor(1.2, requires_grad=True), torch.tensor(0.8, requires_grad=True))
}
