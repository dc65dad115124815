"""Built-in: torch.utils.checkpoint.checkpoint_sequential. A sequence of layers, stored as its input and recomputed.

    y  = layers(x; parameters)
    backward replays the random state, runs the layers again, and returns dx and every parameter's gradient

Teaches: parameters must be arguments. A Function that only takes (layers, x) returns a right dx, passes gradcheck,
    and leaves every parameter untrained. Dropout must draw the same mask twice, so the random state is kept and
    replayed.
When not to use it: the built-in also replays autocast and works under compile; buffers that layers update while
    running (batch norm) are updated twice here as there.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call

TEACHES = "pass the parameters as arguments so that they get gradients; replay the random state so that dropout agrees"
BUILTIN = "torch.utils.checkpoint.checkpoint_sequential"
SECOND_ORDER = False
COMPILES = False


class RecomputedLayers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layers: nn.Module, x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.layers = layers
        cuda_state = torch.cuda.get_rng_state(x.device) if x.is_cuda else None
        ctx.save_for_backward(torch.get_rng_state(), cuda_state, x, *parameters)
        return run(layers, x, parameters)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[1:]
        cpu_state, cuda_state, *saved = ctx.saved_tensors
        x, *parameters = (t.detach().requires_grad_(need) for t, need in zip(saved, needed))
        with torch.random.fork_rng([x.device] if x.is_cuda else []), torch.enable_grad():
            torch.set_rng_state(cpu_state)
            if cuda_state is not None:
                torch.cuda.set_rng_state(cuda_state, x.device)
            y = run(ctx.layers, x, parameters)
        wanted = [t for t, need in zip((x, *parameters), needed) if need]
        gradients = iter(torch.autograd.grad(y, wanted, grad_output, allow_unused=True))
        return None, *(next(gradients) if need else None for need in needed)


def run(layers: nn.Module, x: Tensor, parameters: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    """The layers with these tensors in place of their own parameters."""
    names = [name for name, _ in layers.named_parameters()]
    return functional_call(layers, dict(zip(names, parameters)), (x,))


class Recomputed(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return RecomputedLayers.apply(self.layers, x, *self.layers.parameters())


def sequence_inputs() -> tuple[Any, ...]:
    layers = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).to(torch.float64)
    return layers, torch.randn(4, 3, dtype=torch.float64, requires_grad=True), *layers.parameters()


gradsmith_inputs = {"RecomputedLayers": sequence_inputs}
