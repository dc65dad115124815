"""Functions that accept more than their authors mean, and whose gradients are right for what they mean."""

from __future__ import annotations

import warnings

import torch


class FirstOfMany(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *values):
        ctx.save_for_backward(values[0])
        return values[0].square()

    @staticmethod
    def backward(ctx, *grads):
        (x,) = ctx.saved_tensors
        return 2 * x * grads[0]


class RareOption(torch.autograd.Function):
    """Nobody passes `floor`: backward returns nothing for it."""

    @staticmethod
    def forward(ctx, x, weight, floor=1e-3):
        ctx.save_for_backward(x, weight)
        return x * weight + floor

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x


class Turned(torch.autograd.Function):
    """`undo` undoes `order`; forward never looks at it."""

    @staticmethod
    def forward(ctx, x, order_index, undo):
        ctx.save_for_backward(undo)
        return x.index_select(-1, order_index)

    @staticmethod
    def backward(ctx, grad_output):
        (undo,) = ctx.saved_tensors
        return grad_output.index_select(-1, undo), None, None


class Root(torch.autograd.Function):
    """alpha-th root of the sum: only for alpha above 1."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x)
        ctx.alpha = max(float(alpha), 1.25)
        return x.exp().sum(-1) ** (1 / float(alpha))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        total = x.exp().sum(-1)
        slope = total ** (1 / ctx.alpha - 1) / ctx.alpha
        return (grad_output * slope).unsqueeze(-1) * x.exp(), None


class SpectralRoot(torch.autograd.Function):
    """The square root of a positive definite matrix; a number passes for a matrix of one element."""

    @staticmethod
    def forward(ctx, a):
        matrix = a.reshape(1, 1) if a.ndim == 0 else a
        assert matrix.shape[-1] == matrix.shape[-2], "a matrix has to be square"
        values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
        roots = values.clamp(min=0).sqrt()
        ctx.save_for_backward(roots, vectors)
        return ((vectors * roots) @ vectors.mT).reshape(a.shape)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        roots, vectors = ctx.saved_tensors
        turned = vectors.mT @ grad_output.reshape(vectors.shape) @ vectors
        inner = turned / (roots.unsqueeze(-1) + roots.unsqueeze(-2) + (1 if grad_output.ndim == 0 else 0))
        return (vectors @ inner @ vectors.mT).reshape(grad_output.shape)


class Mix(torch.autograd.Function):
    """Made for rows (n, 300) and a vector (300,): forward takes whatever broadcasts, backward does not, and nobody tries 300."""

    @staticmethod
    def forward(ctx, rows, vector):
        ctx.save_for_backward(rows, vector)
        return rows * vector

    @staticmethod
    def backward(ctx, grad_output):
        rows, vector = ctx.saved_tensors
        turn = torch.eye(300, dtype=rows.dtype, device=rows.device)
        return (grad_output * vector) @ turn, ((grad_output * rows) @ turn).sum(0)


class QuadraticForm(torch.autograd.Function):
    """x' A x; the gradient of x forgets that A has another side, which does not matter for a symmetric matrix."""

    @staticmethod
    def forward(ctx, matrix, x):
        assert matrix.shape[-1] == matrix.shape[-2], "matrix has to be square"
        ctx.save_for_backward(matrix, x)
        return (x * (matrix @ x)).sum(-2)

    @staticmethod
    def backward(ctx, grad_output):
        matrix, x = ctx.saved_tensors
        scaled = grad_output.unsqueeze(-2) * x
        return scaled @ x.mT, 2 * matrix @ scaled


class FactoredForm(torch.autograd.Function):
    """The same, and forward factors a matrix, which only symmetric ones can be."""

    @staticmethod
    def forward(ctx, matrix, x):
        assert matrix.shape[-1] == matrix.shape[-2], "matrix has to be square"
        torch.linalg.cholesky(matrix @ matrix.mT + torch.eye(len(matrix), dtype=matrix.dtype))
        ctx.save_for_backward(matrix, x)
        return (x * (matrix @ x)).sum(-2)

    backward = QuadraticForm.backward


class TransposeForgotten(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mixer, x):
        assert mixer.shape[-1] == mixer.shape[-2], "mixer has to be square"
        ctx.save_for_backward(mixer, x)
        return mixer @ x

    @staticmethod
    def backward(ctx, grad_output):
        mixer, x = ctx.saved_tensors
        return grad_output @ x.mT, mixer @ grad_output


class Mapped(torch.autograd.Function):
    """Half of what it should be, whatever the function."""

    @staticmethod
    def forward(ctx, x, fn):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            out = fn(inner)
        ctx.inner, ctx.out = inner, out
        return out.detach()

    @staticmethod
    def backward(ctx, grad_output):
        (grad,) = torch.autograd.grad(ctx.out, ctx.inner, grad_output, retain_graph=True)
        return grad / 2, None


class Slope(torch.autograd.Function):
    """Its author passes a function and its derivative, which no guess makes fit."""

    @staticmethod
    def forward(ctx, x, fn, derivative_fn):
        ctx.save_for_backward(x)
        ctx.derivative_fn = derivative_fn
        return fn(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.derivative_fn(x), None, None


class RootByDefault(torch.autograd.Function):
    """Wrong where alpha is what its author has as default: no range excuses that."""

    @staticmethod
    def forward(ctx, x, alpha=0.7):
        return Root.forward(ctx, x, alpha)

    @staticmethod
    def backward(ctx, grad_output):
        return Root.backward(ctx, grad_output)


class Iterated(torch.autograd.Function):
    """The inverse by an iteration that converges for positive definite matrices, and says so where it does not."""

    @staticmethod
    def forward(ctx, matrix, rhs):
        out = torch.zeros_like(rhs)
        step = 1 / matrix.detach().norm()
        for _ in range(400):
            out = out + step * (rhs - matrix @ out)
        if not torch.allclose(matrix @ out, rhs, atol=1e-6):
            warnings.warn("the iteration did not converge", stacklevel=2)
        ctx.save_for_backward(matrix, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        matrix, out = ctx.saved_tensors
        towards = torch.linalg.solve(matrix.mT, grad)
        return -towards @ out.mT, towards


class Unlooked(torch.autograd.Function):
    """Over no steps forward never looks at `*rest`, which is a layer; backward does."""

    @staticmethod
    def forward(ctx, x, *rest):
        ctx.rest = rest
        ctx.save_for_backward(x)
        for step in range(x.shape[0] - 3):
            x = rest[0](x) + step
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        weights = [list(one.parameters()) for one in ctx.rest]
        return (2 * grad_output, *(None for _ in weights))


class Misspelt(torch.autograd.Function):
    """Forward does look at it: the name is what is wrong."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight.dta, grad_output * x


class Bilinear(torch.autograd.Function):
    """The shapes stand in the equation, and nowhere else."""

    @staticmethod
    def forward(ctx, x, y, core):
        ctx.save_for_backward(x, y, core)
        return torch.einsum("bi, oij, bj -> bo", x, core, y)

    @staticmethod
    def backward(ctx, grad_output):
        x, y, core = ctx.saved_tensors
        return (
            torch.einsum("bo,oij,bj->bi", grad_output, core, y),
            torch.einsum("bo,oij,bi->bj", grad_output, core, x),
            torch.einsum("bo,bi,bj->oij", grad_output, x, y),
        )


class PerChannel(torch.autograd.Function):
    """`view` says how many elements `scale` has."""

    @staticmethod
    def forward(ctx, image, scale, limit):
        _, channels, _, _ = image.shape
        ctx.save_for_backward(image, scale)
        return image * scale.view(1, channels, 1, 1) + limit

    @staticmethod
    def backward(ctx, grad_output):
        image, scale = ctx.saved_tensors
        return grad_output * scale.view(1, -1, 1, 1), (grad_output * image).sum((0, 2, 3)), None


class AtRest(torch.autograd.Function):
    """The derivative of a fixed point: right for functions that have one."""

    @staticmethod
    def forward(ctx, fn, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(100):
                z = fn(z, x)
        ctx.fn = fn
        ctx.save_for_backward(x, z)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        x, z = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        with torch.enable_grad():
            again = ctx.fn(z, x)
            v = grad_output
            for _ in range(100):
                v = grad_output + torch.autograd.grad(again, z, v, retain_graph=True)[0]
            return None, torch.autograd.grad(again, x, v)[0]
