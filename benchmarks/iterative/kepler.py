"""Kepler's equation, solved for each planet by Newton's method in a bracket."""

import math

import torch


def eccentric_anomaly(mean, eccentricity):
    low, high = mean - eccentricity, mean + eccentricity
    angle = mean
    for _ in range(100):
        excess = angle - eccentricity * torch.sin(angle) - mean
        if excess > 0:
            high = angle
        else:
            low = angle
        following = angle - excess / (1 - eccentricity * torch.cos(angle))
        if not low < following < high:
            following = (low + high) / 2
        done = (following - angle).abs() < 1e-14
        angle = following
        if done:
            break
    return angle


class Kepler(torch.autograd.Function):
    """The angle E with E - eccentricity * sin(E) = mean."""

    @staticmethod
    def forward(ctx, mean, eccentricity):
        angles = [eccentric_anomaly(m, e) for m, e in zip(mean.unbind(), eccentricity.unbind())]
        angle = torch.stack(angles)
        ctx.save_for_backward(angle, eccentricity)
        return angle

    @staticmethod
    def backward(ctx, grad_output):
        angle, eccentricity = ctx.saved_tensors
        through = grad_output / (1 - eccentricity * torch.cos(angle))
        return through, through * torch.sin(angle)


def planets():
    mean = torch.rand(200, dtype=torch.float64).mul(2 * math.pi - 0.4).add(0.2)
    return mean.requires_grad_(), torch.rand(200, dtype=torch.float64).mul(0.8).add(0.1).requires_grad_()


gradsmith_inputs = {"Kepler": planets}
