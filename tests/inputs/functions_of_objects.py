"""Functions that are given more than tensors, and some whose shapes nobody would try first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Adds a function of one half to the other half, and can take that back."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a + self.net(b), b], dim=-1)

    def undone(self, y, dy):
        a, b = y.detach().chunk(2, dim=-1)
        da, db = dy.chunk(2, dim=-1)
        with torch.enable_grad():
            b = b.detach().requires_grad_()
            added = self.net(b)
        torch.autograd.backward(added, da)  # the parameters get theirs on the way
        return torch.cat([a - added.detach(), b.detach()], dim=-1), torch.cat([da, db + b.grad], dim=-1)


class Reversible(torch.autograd.Function):
    """Blocks are walked through backwards, by a method that only their class has."""

    @staticmethod
    def forward(ctx, x, blocks, options):
        with torch.no_grad():
            for block in blocks:
                x = block(x, **options)
        ctx.y, ctx.blocks = x, blocks
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        y = ctx.y
        for block in ctx.blocks[::-1]:
            y, grad_output = block.undone(y, grad_output)
        return grad_output, None, None


class Listed(torch.autograd.Function):
    """Says of which class its blocks are."""

    @staticmethod
    def forward(ctx, x, blocks):
        assert isinstance(blocks, nn.ModuleList)
        for block in blocks:
            assert isinstance(block, Block)
        return Reversible.forward(ctx, x, blocks, {})

    @staticmethod
    def backward(ctx, grad_output):
        return Reversible.backward(ctx, grad_output)[:2]


class OfAModule(torch.autograd.Function):
    """A module, called by its forward, and its parameters beside it, which get gradients."""

    @staticmethod
    def forward(ctx, x, module, *weights):
        ctx.save_for_backward(x)
        ctx.module = module
        with torch.no_grad():
            return module.forward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            out = ctx.module.forward(x)
        grads = torch.autograd.grad(out, (x, *ctx.module.parameters()), grad_output)
        return grads[0], None, *grads[1:]


class Quarter(torch.autograd.Function):
    """A weight of four blocks: the input has to be four times as wide as one of them is high."""

    @staticmethod
    def forward(ctx, x, one, other, bias):
        weight = torch.cat([torch.cat([one, other], 1), torch.cat([-other, one], 1)], 0)
        weight = torch.cat([weight, weight], 0)
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        dw = x.mT @ grad_output
        upper, lower = dw.chunk(2, 0)
        dw = upper + lower
        (a, b), (c, d) = (half.chunk(2, 1) for half in dw.chunk(2, 0))
        return grad_output @ weight.mT, a + d, b - c, grad_output.sum(0)


class Paired(torch.autograd.Function):
    """The length of pairs of numbers; of whatever comes behind the second number forward reads nothing."""

    @staticmethod
    def forward(ctx, x):
        out = (x[..., 0] ** 2 + x[..., 1] ** 2).sqrt()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, out = ctx.saved_tensors
        return (grad_output / out).unsqueeze(-1) * x


class Shared(torch.autograd.Function):
    """Relevance: what comes back is shared out by what went in, and is a derivative nowhere."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x.sin() * y.exp()

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        whole = x.abs() + y.abs()
        return grad_output * x.abs() / whole, grad_output * y.abs() / whole


class Handed(torch.autograd.Function):
    """A layer in whose place backward puts the identity."""

    @staticmethod
    def forward(ctx, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class HalfRight(torch.autograd.Function):
    """One gradient is right, the other one is a mistake."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x.sin() * y.exp()

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * x.cos() * y.exp(), grad_output * (x.sin() + y.cos()) * y


class Told(torch.autograd.Function):
    """Only backward looks at what it is told; whatever that is, it is not None."""

    @staticmethod
    def forward(ctx, x, teller):
        ctx.teller = teller
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (2 if ctx.teller.agrees_with_everybody else 0), None


class Halving(torch.autograd.Function):
    """The root of x = 4^t y by so many halvings; backward is the derivative of the root."""

    @staticmethod
    def forward(ctx, x, t, num_iters):
        low, high = torch.zeros_like(x), x.abs() + 1
        for _ in range(num_iters):
            middle = (low + high) / 2
            below = middle * 4**t < x.abs()
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        ctx.save_for_backward(x)
        ctx.t = t
        return (low + high) / 2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sign() * 4**-ctx.t, None, None


class Unsuitable(torch.autograd.Function):
    """Takes no input that anybody would guess."""

    @staticmethod
    def forward(ctx, x, word):
        if len(str(word)) < 10_000:
            raise ValueError("a longer word")
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class SlowlyUnsuitable(torch.autograd.Function):
    """The same, and takes its time."""

    @staticmethod
    def forward(ctx, x, word):
        sum(range(20_000))
        return Unsuitable.forward(ctx, x, word)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


def made_of(function):
    """What is differentiated comes from outside, and so does how often."""

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad(function(x), x, grad_output)[0]

    return Made


class Scales(Protocol):
    """Asked whether something is one, it raises."""

    def scaled(self, x: torch.Tensor) -> torch.Tensor: ...


class Sizes(TypedDict):
    """So does this."""

    factor: float


class Tripling:
    def scaled(self, x):
        return 3 * x


class ByProtocol(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, how: Scales, sizes: Sizes):
        ctx.how = how
        return how.scaled(x)

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.how.scaled(grad_output), None, None


class Unfinished(nn.Module):
    """Leaves out what nn.Module's own constructor does: whatever asks for its parts raises."""

    def __init__(self):
        self.factor = 2

    def lifted(self, x):
        return x * self.factor


class Lifting:
    def lifted(self, x):
        return 5 * x


class ByLifting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        return how.lifted(x)

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.how.lifted(grad_output), None


Operator = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Plan:
    """What a solver keeps together, under names that say what they are: an alias of a type, a list of strangers, a tolerance."""

    operator: Operator
    terms: Sequence[Stranger]  # noqa: F821 (as under TYPE_CHECKING)
    rtol: float


class Planned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, plan: Plan):
        ctx.save_for_backward(x)
        ctx.plan = plan
        result = plan.operator(x) * (1 + plan.rtol)
        for term in plan.terms:
            result = result + term.applied(x)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            result = ctx.plan.operator(inner) * (1 + ctx.plan.rtol)
            for term in ctx.plan.terms:
                result = result + term.applied(inner)
        return torch.autograd.grad(result, inner, grad_output)[0], None
