"""One wrong element of a gradient, in JAX: does jax.test_util.check_grads notice? The cases of `verify.py elements`, as far as JAX has them.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install torchfix jax
    python benchmarks/check_grads.py [--jax /tmp/peers/bin/python] [--seeds 8]

A function of JAX gets a custom_vjp that is right, except for one element of one gradient, which is off by 1 % or 10 %. check_grads
runs in float64 with its own tolerances, in reverse mode, first order. What it says of the right custom_vjp is counted too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", default="/tmp/peers/bin/python")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--here", action="store_true", help="this interpreter has JAX")
    options = parser.parse_args()
    if options.here:
        compare(options.seeds)
    else:
        sys.exit(subprocess.call([options.jax, __file__, "--here", "--seeds", str(options.seeds)]))


def compare(seeds: int) -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)

    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -1) @ v

    def conv(x: Any, weight: Any) -> Any:
        return jax.lax.conv(x, weight, (1, 1), "SAME")

    cases: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
        "linear 3x4->5": (jnp.matmul, [(3, 4), (4, 5)], 1),
        "linear 20x20->30": (jnp.matmul, [(20, 20), (20, 30)], 1),
        "linear 64x256->256": (jnp.matmul, [(64, 256), (256, 256)], 1),
        "softmax 16x64": (lambda x: jax.nn.softmax(x, -1), [(16, 64)], 0),
        "layer norm 16x64": (layer_norm, [(16, 64), (64,), (64,)], 0),
        "attention 2x8x16": (attention, [(2, 8, 16)] * 3, 1),
        "conv2d 2x3x9x9": (conv, [(2, 3, 9, 9), (4, 3, 3, 3)], 1),
        "exp(3x) 16x64": (lambda x: jnp.exp(3 * x), [(16, 64)], 0),
        "relu 65536": (lambda x: jnp.maximum(x, 0), [(65536,)], 0),
    }

    def spoilt(op: Callable[..., Any], which: int, index: int, factor: float) -> Callable[..., Any]:
        @jax.custom_vjp
        def subject(*args: Any) -> Any:
            return op(*args)

        def backward(args: Any, grad_output: Any) -> Any:
            grads = list(jax.vjp(op, *args)[1](grad_output))
            grads[which] = grads[which].ravel().at[index].multiply(factor).reshape(grads[which].shape)
            return tuple(grads)

        subject.defvjp(lambda *args: (op(*args), args), backward)
        return subject

    def notices(subject: Callable[..., Any], args: list[Any]) -> bool:
        try:
            check_grads(subject, args, order=1, modes=["rev"])
        except AssertionError:
            return True
        return False

    print(f"jax {jax.__version__}, check_grads in float64: noticed with so many of {seeds} seeds")
    print(f"{'case':22} {'right':>6} {'1 % off':>8} {'10 % off':>9}")
    for name, (op, shapes, which) in cases.items():
        counts = dict.fromkeys((1.0, 1.01, 1.1), 0)
        for seed in range(seeds):
            draw = np.random.default_rng(seed)
            args = [jnp.asarray(draw.standard_normal(shape)) for shape in shapes]
            grad = np.asarray(jax.grad(lambda *a, op=op: op(*a).sum(), argnums=which)(*args)).ravel()
            live = np.flatnonzero(np.abs(grad) > 1e-12) if name.startswith("relu") else np.arange(grad.size)
            index = int(draw.choice(live))
            for factor in counts:
                counts[factor] += notices(spoilt(op, which, index, factor), args)
        print(f"{name:22} {counts[1.0]:>6} {counts[1.01]:>8} {counts[1.1]:>9}", flush=True)


if __name__ == "__main__":
    main()
