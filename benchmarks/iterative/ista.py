"""Sparse coding by iterative soft thresholding, unrolled."""

import torch

ITERATIONS = 6000


class SparseCode(torch.autograd.Function):
    """The code x that nearly minimises |dictionary x - signal|^2 / 2 + penalty * |x|_1."""

    @staticmethod
    def forward(ctx, signal, dictionary, penalty):
        step = 1 / torch.linalg.matrix_norm(dictionary, 2).square()
        gram, onto = dictionary.T @ dictionary, dictionary.T @ signal
        x = torch.zeros_like(onto)
        signs = []
        for _ in range(ITERATIONS):
            moved = x - step * (gram @ x - onto)
            x = moved.sign() * (moved.abs() - step * penalty).clamp(min=0)
            signs.append(x.sign())
        ctx.save_for_backward(dictionary, gram, step, torch.stack(signs))
        return x

    @staticmethod
    def backward(ctx, grad_output):
        dictionary, gram, step, signs = ctx.saved_tensors
        grad_onto = torch.zeros_like(grad_output)
        grad_x = grad_output
        for sign in signs.flip(0).unbind():
            grad_moved = grad_x * sign.abs()
            grad_penalty = -step * (grad_x * sign).sum()
            grad_onto = grad_onto + step * grad_moved
            grad_x = grad_moved - step * (gram @ grad_moved)
        return dictionary @ grad_onto, None, grad_penalty


def patches():
    dictionary = torch.nn.functional.normalize(torch.randn(10, 16, dtype=torch.float64), dim=0)
    code = torch.randn(16, 3, dtype=torch.float64) * (torch.rand(16, 3) < 0.3)
    penalty = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)
    return (dictionary @ code).requires_grad_(), dictionary, penalty


gradsmith_inputs = {"SparseCode": patches}
