import torch


def solve_lyapunov(a, q):
    a = a.contiguous()
    n = a.shape[0]
    eye = torch.eye(n, dtype=a.dtype)
    big = torch.kron(a, eye) + torch.kron(eye, a)
    return torch.linalg.solve(big, q.reshape(-1)).reshape(n, n)


class Lyapunov(torch.autograd.Function):
    """X with A X + X A^T = Q; no two eigenvalues of A may sum to zero."""

    @staticmethod
    def forward(ctx, a, q):
        x = solve_lyapunov(a, q)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        s = solve_lyapunov(a.t(), g)
        return -(s @ x.t() + s.t() @ x), s


def _stable(n=3):
    a = torch.randn(n, n, dtype=torch.float64) * 0.3 + 2 * torch.eye(n, dtype=torch.float64)
    return a.requires_grad_(), torch.randn(n, n, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Lyapunov": _stable}
