import torch


class CountedTanh(torch.autograd.Function):
    """tanh; counts its calls on the class, which the result does not depend on."""

    calls = {"forward": 0, "backward": 0}

    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise ValueError("real input only")
        CountedTanh.calls["forward"] += 1
        ctx.number = CountedTanh.calls["forward"]
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        CountedTanh.calls["backward"] += 1
        (y,) = ctx.saved_tensors
        return torch.addcmul(g, g * y, y, value=-1)


gradsmith_inputs = {"CountedTanh": lambda: (torch.randn(2, 3, dtype=torch.float64, requires_grad=True),)}
