import torch
from torch.autograd.function import once_differentiable


def _step(angle, speed, damping):
    half = speed - 0.05 * (angle.sin() + damping * speed)
    angle = angle + 0.1 * half
    return angle, half - 0.05 * (angle.sin() + damping * half)


class PendulumStep(torch.autograd.Function):
    """One step of a damped pendulum; backward asks torch.func.vjp."""

    @staticmethod
    def forward(ctx, angle, speed, damping):
        if angle.shape != speed.shape or damping.dim() != 0:
            raise ValueError("angle and speed of one shape, damping a scalar")
        ctx.save_for_backward(angle, speed, damping)
        return _step(angle, speed, damping)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        _, pull = torch.func.vjp(_step, *ctx.saved_tensors)
        return pull(grads)


def example():
    torch.manual_seed(0)
    return (torch.randn(3, dtype=torch.float64, requires_grad=True), torch.randn(3, dtype=torch.float64, requires_grad=True),
            torch.tensor(0.2, dtype=torch.float64, requires_grad=True))


gradsmith_inputs = {"PendulumStep": example}
