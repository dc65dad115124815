import torch


class CubeRoot(torch.autograd.Function):
    """Real cube root by Newton's method, iterated to a tolerance; the derivative is implicit. x must not be 0."""

    @staticmethod
    def forward(ctx, x):
        if (x == 0).any():
            raise ValueError("the slope is infinite at 0")
        y = x.sign() * (x.abs() + 1) / 2
        tiny = torch.finfo(x.dtype).eps
        for _ in range(1500):
            new = y - (y - x / (y * y)) / 3
            done = (new - y).abs() <= 4 * tiny * new.abs()
            y = new
            if bool(done.all()):
                break
        else:
            raise ValueError("not converged")
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3 * y * y)


gradsmith_inputs = {"CubeRoot": lambda: (torch.tensor([0.5, -8.0, 27.0, 1e-3], dtype=torch.float64, requires_grad=True),)}
