import torch


class BinCenter(torch.autograd.Function):
    """gain * (centre of the bin that x falls into); constant in x between the edges."""

    @staticmethod
    def forward(ctx, x, gain, width):
        centre = (torch.floor(x / width) + 0.5) * width
        ctx.save_for_backward(centre)
        return gain * centre

    @staticmethod
    def backward(ctx, grad_output):
        (centre,) = ctx.saved_tensors
        return torch.zeros_like(grad_output), (grad_output * centre).sum(), None


gradsmith_inputs = {
    "BinCenter": lambda: (
        torch.tensor([0.13, 0.71, -0.42, 1.9], dtype=torch.float64, requires_grad=True),
        torch.tensor(1.2, dtype=torch.float64, requires_grad=True),
        0.5,
    )
}
