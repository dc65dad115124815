"""The figures of docs/when_not_to.md: what a call of a custom Function costs, what a loop over time costs, what autograd saves.

    python benchmarks/when_not_to.py            all three; one thread, about a minute on a free core

Times are CPU times of this process, each the smallest of many rounds, the alternatives in turns. Bytes are exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks

ROUNDS, CALLS = 40, 200


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * ctx.saved_tensors[0].cos()


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * ctx.saved_tensors[0].cos()


class Split(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * ctx.saved_tensors[0].cos()


@torch.library.custom_op("gradsmith_bench::sine", mutates_args=())
def sine(x: Tensor) -> Tensor:
    return x.sin()


def _keep(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


sine.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=_keep)
FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "torch.sin": torch.sin,
    "forward(ctx, x)": Plain.apply,
    "with once_differentiable": Once.apply,
    "setup_context": Split.apply,
    "custom_op": sine,
}


def smallest(works: dict[str, Callable[[], Any]], rounds: int, calls: int) -> dict[str, float]:
    """Seconds of one call of each, the smallest of many rounds in which they take turns."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            started = time.process_time()
            for _ in range(calls):
                work()
            best[name] = min(best[name], (time.process_time() - started) / calls)
    return best


def calls() -> None:
    x = torch.randn(8, requires_grad=True)
    one = torch.ones(8)
    forward = smallest({n: lambda f=f: f(x) for n, f in FORMS.items()}, ROUNDS, CALLS)
    both = smallest({n: lambda f=f: torch.autograd.grad(f(x), x, one) for n, f in FORMS.items()}, ROUNDS, CALLS)
    print("microseconds of a call on 8 elements: forward, forward and backward (more than torch.sin)")
    for name in FORMS:
        more = (forward[name] - forward["torch.sin"]) * 1e6, (both[name] - both["torch.sin"]) * 1e6
        print(f"  {name:26} {forward[name] * 1e6:5.1f} {both[name] * 1e6:6.1f}   (+{more[0]:.1f}, +{more[1]:.1f})")


def loops() -> None:
    x = torch.randn(2048, 8, 64, requires_grad=True)

    def by_index() -> None:
        torch.stack([x[t] for t in range(len(x))]).sum().backward()

    def by_unbind() -> None:
        torch.stack(list(x.unbind(0))).sum().backward()

    best = smallest({"x[t]": by_index, "x.unbind(0)": by_unbind}, 5, 1)
    print("2048 time steps of (8, 64), forward and backward")
    for name, seconds in best.items():
        print(f"  {name:12} {seconds * 1e3:7.1f} ms")


def saved(work: Callable[[], Any], held: list[Tensor]) -> int:
    """Bytes that autograd keeps for backward, each storage once; without what the caller holds anyway."""
    seen: dict[int, int] = {}

    def keep(t: Tensor) -> Tensor:
        seen[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(keep, lambda t: t):
        out = work()
    for t in held:
        seen.pop(t.untyped_storage().data_ptr(), None)
    del out
    return sum(seen.values())


def bytes_kept() -> None:
    x = torch.randn(256, 256, requires_grad=True)
    cases = {
        "F.silu(x)": lambda: F.silu(x),
        "x * torch.sigmoid(x)": lambda: x * torch.sigmoid(x),
        "F.gelu(x)": lambda: F.gelu(x),
        "0.5 * x * (1 + torch.erf(x / 2**0.5))": lambda: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
    }
    print("tensors of the size of x that autograd saves besides x")
    for name, work in cases.items():
        print(f"  {name:40} {saved(work, [x]) / x.nbytes:.0f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    calls()
    loops()
    bytes_kept()
