import torch


class PowerCurve(torch.autograd.Function):
    """scale * (x - mean)^power with options in a dict: scale (1), power (a whole number >= 1; 2), centre (False). Real x."""

    defaults = {"scale": 1.0, "power": 2, "centre": False}

    @staticmethod
    def forward(ctx, x, options):
        unknown = set(options) - set(PowerCurve.defaults)
        ctx.options = {**PowerCurve.defaults, **options}
        power = ctx.options["power"]
        if unknown or power != int(power) or power < 1 or x.is_complex():
            raise ValueError("unknown option, or power not a whole number >= 1")
        ctx.save_for_backward(x)
        d = x - x.mean() if ctx.options["centre"] else x
        return ctx.options["scale"] * d ** int(power)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        o, power = ctx.options, int(ctx.options["power"])
        d = x - x.mean() if o["centre"] else x
        g = grad * o["scale"] * power * (d ** (power - 1) if power > 1 else torch.ones_like(d))
        return (g - g.mean() if o["centre"] else g), None


gradsmith_inputs = {"PowerCurve": lambda: (torch.randn(5, requires_grad=True), {"scale": 0.5, "centre": True})}
