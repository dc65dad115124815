"""Small projects that tests of the daily tool check."""

from __future__ import annotations

from pathlib import Path

HEAD = "import torch\n\n\n"
FUNCTION = """class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {scale} * x

    @staticmethod
    def backward(ctx, grad_output):
        return {slope} * grad_output


"""
INPUTS = "gradsmith_inputs = {{{}}}\n"
ONE = '"{name}": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)'


def functions(names: list[str], *, wrong: tuple[str, ...] = ()) -> str:
    """The source of a file of linear Functions with declared inputs; those in `wrong` have a wrong gradient."""
    bodies = [FUNCTION.format(name=name, scale=2, slope=3 if name in wrong else 2) for name in names]
    return HEAD + "".join(bodies) + INPUTS.format(", ".join(ONE.format(name=name) for name in names))


def write(folder: Path, files: dict[str, str]) -> Path:
    """The folder, with these files in it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


SPIKE = '''class {name}(torch.autograd.Function):
    """A spike forward, {slope} backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ({slope})


'''
SLOPES = {
    "Sigmoid": "torch.sigmoid(4 * x) * (1 - torch.sigmoid(4 * x))",
    "FastSigmoid": "(1 + 25 * x.abs()).pow(-2)",
    "Atan": "1 / (1 + (3 * x).square())",
    "Boxcar": "(x.abs() < 0.5).to(x.dtype)",
    "Triangle": "(1 - x.abs()).clamp(min=0)",
    "Gaussian": "torch.exp(-x.square())",
    "Cosine": "torch.cos(x.clamp(-1.5, 1.5))",
    "Laplace": "torch.exp(-x.abs())",
    "Cauchy": "1 / (1 + x.square())",
    "Leaky": "torch.where(x > 0, 1.0, 0.1).to(x.dtype)",
    "Tanh": "1 - torch.tanh(x).square()",
    "Quartic": "(1 - x.square()).clamp(min=0).square()",
    "Softsign": "1 / (1 + x.abs()).square()",
    "StraightThrough": "1",
    "Wide": "torch.sigmoid(x) * (1 - torch.sigmoid(x))",
}


def spikes() -> str:
    """The source of a library of 15 surrogates, none of them declared, without inputs."""
    return HEAD + "".join(SPIKE.format(name=name, slope=slope) for name, slope in SLOPES.items()).rstrip() + "\n"
