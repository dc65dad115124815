"""Functions that are given functions: nobody declared what to call them with."""

from __future__ import annotations

import torch
from torch.autograd import Function


class Branch(Function):
    """One of two functions, and only that one is differentiated."""

    @staticmethod
    def forward(ctx, use_first, first_fn, second_fn, *operands):
        ctx.fn = first_fn if use_first else second_fn
        ctx.save_for_backward(*operands)
        return ctx.fn(*operands)

    @staticmethod
    def backward(ctx, grad):
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = ctx.fn(*inputs)
        return None, None, None, *torch.autograd.grad(out, inputs, grad)


class BranchTwice(Branch):
    """The same, and every gradient is twice too large."""

    @staticmethod
    def backward(ctx, grad):
        return tuple(g if g is None else 2 * g for g in Branch.backward(ctx, grad))


class Cumulate(Function):
    """A scan: `num_xs` of the operands are walked through, the others are handed to every step."""

    @staticmethod
    def forward(ctx, combine_fn, num_xs, num_extra, *operands):
        xs, extra = operands[:num_xs], operands[num_xs : num_xs + num_extra]
        if len(xs) + len(extra) != len(operands) or len(xs) != 1:
            raise ValueError("one sequence, and the counts have to add up")
        ctx.fn, ctx.extra = combine_fn, len(extra)
        ctx.save_for_backward(*operands)
        return _cumulated(combine_fn, xs[0], extra)

    @staticmethod
    def backward(ctx, grad):
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = _cumulated(ctx.fn, inputs[0], inputs[1:])
        grads = torch.autograd.grad(out, inputs, grad, allow_unused=True)
        return None, None, None, *grads


def _cumulated(combine_fn, xs, extra):
    steps = [xs[0]]
    for x in xs[1:]:
        (following,) = combine_fn(steps[-1], x, *extra)
        steps.append(following)
    return torch.stack(steps)


class Loop(Function):
    """A loop that a function ends; with the wrong one it runs for ever."""

    @staticmethod
    def forward(ctx, cond_fn, body_fn, x):
        states = [x]
        while cond_fn(states[-1]):
            states.append(body_fn(states[-1]))
        ctx.fn, ctx.states = body_fn, states[:-1]
        return states[-1] * 1.0

    @staticmethod
    def backward(ctx, grad):
        for state in reversed(ctx.states):
            with torch.enable_grad():
                x = state.detach().requires_grad_()
                (grad,) = torch.autograd.grad(ctx.fn(x), x, grad)
        return None, None, grad


class Solved(Function):
    """The derivative of a fixed point: right for a solver that solves, which no guess does."""

    @staticmethod
    def forward(ctx, solver, step_fn, x):
        z = solver(step_fn, x)
        ctx.fn = step_fn
        ctx.save_for_backward(z)
        return z

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        with torch.enable_grad():
            z = z.detach().requires_grad_()
            (turned,) = torch.autograd.grad(ctx.fn(z), z, grad)
        return None, None, grad + turned


class GivenSlope(Function):
    """The caller brings the derivative along: no pair of guessed functions fits."""

    @staticmethod
    def forward(ctx, fn, slope_fn, x):
        ctx.slope_fn = slope_fn
        ctx.save_for_backward(x)
        return fn(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return None, None, ctx.slope_fn(x) * grad


class Undone(Function):
    """Keeps no input: what backward needs, the inverse of the function gives back."""

    @staticmethod
    def forward(ctx, fn, fn_inverse, x):
        ctx.fn, ctx.fn_inverse = fn, fn_inverse
        out = fn(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            x = ctx.fn_inverse(ctx.saved_tensors[0].detach()).detach().requires_grad_()
            (found,) = torch.autograd.grad(ctx.fn(x), x, grad)
        return None, None, found
