"""A neural ordinary differential equation by Runge-Kutta; backward repeats each step to save memory."""

import torch

STEPS = 2400


def speed(state, weight, bias):
    return torch.tanh(state @ weight + bias)


def rk4(state, weight, bias, h):
    a = speed(state, weight, bias)
    b = speed(state + h / 2 * a, weight, bias)
    c = speed(state + h / 2 * b, weight, bias)
    d = speed(state + h * c, weight, bias)
    return state + h / 6 * (a + 2 * b + 2 * c + d)


class Flow(torch.autograd.Function):
    """The state after the given time."""

    @staticmethod
    def forward(ctx, state, weight, bias, time):
        h = time / STEPS
        states = [state]
        for _ in range(STEPS):
            states.append(rk4(states[-1], weight, bias, h))
        ctx.h = h
        ctx.save_for_backward(weight, bias, *states[:-1])
        return states[-1]

    @staticmethod
    def backward(ctx, grad_output):
        weight, bias, *states = ctx.saved_tensors
        adjoint = grad_output
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        for state in reversed(states):
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_() for t in (state, weight, bias)]
                following = rk4(*leaves, ctx.h)
            adjoint, of_weight, of_bias = torch.autograd.grad(following, leaves, adjoint)
            grad_weight = grad_weight + of_weight
            grad_bias = grad_bias + of_bias
        return adjoint, grad_weight, grad_bias, None


def start():
    state = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    return state, weight, torch.randn(4, dtype=torch.float64, requires_grad=True), 2.0


gradsmith_inputs = {"Flow": start}
