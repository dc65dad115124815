"""An ODE trajectory grown with cat, against a list and one stack."""

import torch

CAUSES = ("cat-in-loop",)


def slow(state, matrix):
    path = state[None]
    for _ in range(150):
        state = state + 0.01 * torch.tanh(state @ matrix)
        path = torch.cat((path, state[None]), dim=0)  # <-
    return path


def fast(state, matrix):
    path = [state]
    for _ in range(150):
        state = state + 0.01 * torch.tanh(state @ matrix)
        path.append(state)
    return torch.stack(path)


def inputs():
    return torch.randn(32, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True)
