"""Functions as people write them, with no word about their inputs."""
# ruff: noqa: F722, F821  (jaxtyping's names of dimensions are no Python)

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        out = x @ weight.t()
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, bias = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x, grad_output.sum(0) if bias is not None else None


class Shaped(Function):
    @staticmethod
    def forward(ctx, x: Float[Tensor, "rows inner"], w: Float[Tensor, "inner columns"], pick: Int[Tensor, "rows"]):  # noqa: UP037
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w.t(), x.t() @ grad_output, None


class Reduce(Function):
    @staticmethod
    def forward(ctx, x, dim, mode):
        if mode not in ("add", "average"):
            raise ValueError("mode is add or average")
        ctx.shape, ctx.dim, ctx.mode = x.shape, dim, mode
        return x.sum(dim) if mode == "add" else x.mean(dim)

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output.unsqueeze(ctx.dim).expand(ctx.shape)
        return (grad if ctx.mode == "add" else grad / ctx.shape[ctx.dim]), None, None


class LogDet(Function):
    @staticmethod
    def forward(ctx, matrix):
        factor = torch.linalg.cholesky(matrix)
        ctx.save_for_backward(factor)
        return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (factor,) = ctx.saved_tensors
        return grad_output[..., None, None] * torch.cholesky_inverse(factor)


class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        _b, _h, _n, d = q.shape
        weights = torch.softmax(q @ k.mT / d**0.5, -1)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, grad_output):
        q, k, v, weights = ctx.saved_tensors
        grad = grad_output @ v.mT
        grad = weights * (grad - (grad * weights).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
        return grad @ k, grad.mT @ q, weights.mT @ grad_output


class Gather(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        return grad_output.new_zeros(ctx.shape).index_add_(0, index, grad_output), None


class Hopeless(Function):
    @staticmethod
    def forward(ctx, x, config):
        return x * config["scale"].value

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class BilinearOfSymmetric(Function):
    """Right only where matrix is symmetric, which its author takes for granted."""

    @staticmethod
    def forward(ctx, matrix, vectors):
        product = matrix @ vectors
        ctx.save_for_backward(vectors, product)
        return (vectors * product).sum(-2)

    @staticmethod
    def backward(ctx, grad_output):
        vectors, product = ctx.saved_tensors
        return vectors @ (grad_output.unsqueeze(-1) * vectors.mT), 2 * product * grad_output.unsqueeze(-2)


class Edges(torch.autograd.Function):
    """Sums over the edges of a graph: a weight for each, from a sender to a receiver."""

    @staticmethod
    def forward(ctx, weights, senders, receivers, nodes, count):
        ctx.save_for_backward(weights, senders, receivers, nodes)
        return weights.new_zeros(count).index_add(0, receivers, weights * nodes[senders])

    @staticmethod
    def backward(ctx, grad_output):
        weights, senders, receivers, nodes = ctx.saved_tensors
        arrived = grad_output[receivers]
        return (
            arrived * nodes[senders],
            None,
            None,
            torch.zeros_like(nodes).index_add(0, senders, arrived * weights),
            None,
        )


class Doubled(Linear):
    """Wrong in the gradient of weight."""

    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight, grad_bias = Linear.backward(ctx, grad_output)
        return grad_x, 2 * grad_weight, grad_bias


class Cell(torch.nn.Module):
    def __init__(self, input_size, hidden_size, bias=True):
        super().__init__()
        self.inner = torch.nn.Linear(input_size, hidden_size, bias=bias)
        self.outer = torch.nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.outer.in_features)
        for t in range(x.shape[1]):
            h = torch.tanh(self.inner(x[:, t]) + self.outer(h))
        return h


class LeakyOverTime(torch.autograd.Function):
    """Five dimensions, of which it reads the last by a name for the shape; backward wants one factor for each of its steps."""

    @staticmethod
    def forward(ctx, spikes, decay, kernel):
        shape = spikes.shape
        steps = shape[4]
        state = torch.zeros(shape[0], shape[1], shape[2], shape[3], dtype=spikes.dtype)
        out = []
        for t in range(steps):
            state = decay * state + spikes[..., t]
            out.append(state)
        ctx.decay = decay
        ctx.save_for_backward(kernel)
        return torch.stack(out, dim=4)

    @staticmethod
    def backward(ctx, grad_output):
        (kernel,) = ctx.saved_tensors
        weights = kernel.repeat(*grad_output.shape[:4], 1)
        grad, state = [], torch.zeros_like(grad_output[..., 0])
        for t in reversed(range(grad_output.shape[4])):
            state = grad_output[..., t] + ctx.decay * state
            grad.insert(0, state + 0 * weights[..., t])
        return torch.stack(grad, dim=4), None, None


class Reported(torch.autograd.Function):
    """Tells whoever listens; nobody has to."""

    @staticmethod
    def forward(ctx, x, listener: Listener | None):
        ctx.save_for_backward(x)
        if listener is not None:
            listener.heard(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos(), None


class Abstract(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("Forward must be implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("Backward must be implemented.")


class ReturnsNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class SparseProduct(torch.autograd.Function):
    """Forward takes any matrix; backward is written for compressed rows, and its gradient has their entries only."""

    factor = 1.0

    @staticmethod
    def forward(ctx, A, b):
        ctx.save_for_backward(A, b)
        return A @ b

    @classmethod
    def backward(cls, ctx, grad_output):
        A, b = ctx.saved_tensors
        crow, col = A.crow_indices(), A.col_indices()
        rows = torch.repeat_interleave(torch.arange(A.shape[0]), crow.diff())
        values = cls.factor * grad_output[rows] * b[col]
        return torch.sparse_csr_tensor(crow, col, values, size=A.shape), A.t() @ grad_output


class SparseProductDoubled(SparseProduct):
    factor = 2.0
