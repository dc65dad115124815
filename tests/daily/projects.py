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
