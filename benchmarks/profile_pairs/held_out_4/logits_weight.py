"""A distillation layer whose teacher weight is constant, and whose gradient is computed nevertheless, against None."""

import torch

CAUSES = ("wasted-gradient",)
FAST_MAY_SAY = ("recomputed-saved",)  # rightly: it computes log_softmax twice


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, student, teacher):
        p = torch.softmax(teacher, dim=1)
        ctx.save_for_backward(student, p)
        return -(p * torch.log_softmax(student, dim=1)).sum(1).mean()

    @staticmethod
    def backward(ctx, grad_output):
        student, p = ctx.saved_tensors
        n = student.shape[0]
        logs = torch.log_softmax(student, dim=1)
        inner = (p * logs).sum(1, keepdim=True)
        grad_teacher = -grad_output / n * p * (logs - inner)  # <-
        return grad_output / n * (torch.exp(logs) - p), grad_teacher


class Fast(Slow):
    @staticmethod
    def backward(ctx, grad_output):
        student, p = ctx.saved_tensors
        logs = torch.log_softmax(student, dim=1)
        return grad_output / student.shape[0] * (torch.exp(logs) - p), None


slow, fast = Slow.apply, Fast.apply


def inputs():
    return torch.randn(256, 200, requires_grad=True), torch.randn(256, 200)
