"""The cells of `recurrent_cases.py` in JAX, run by a Python that has JAX: one order per line in, one answer per line out.

`recurrent_peers.py` starts it. Orders: {"case": ..., "steps": ..., "batch": ..., "size": ..., "file": ...} compiles both
ways (the product with x inside the scan, or hoisted in front of it) and answers with the seconds that took and with what
the first 8 steps return, for comparison. {"run": "plain"} answers with the seconds of two calls in a row.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

CHECKED_STEPS = 8


@jax.custom_vjp
def spike(v: Any) -> Any:
    return (v > 0).astype(v.dtype)


spike.defvjp(lambda v: (spike(v), v), lambda v, g: (g / (1 + 10.0 * jnp.abs(v)) ** 2,))


def norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def rnn(p: Any, z: Any, h: Any) -> Any:
    h = jnp.tanh(z + h @ p["weight_hh"].T)
    return h, h


def gru(p: Any, z: Any, h: Any) -> Any:
    x_r, x_z, x_n = jnp.split(z, 3, -1)
    h_r, h_z, h_n = jnp.split(h @ p["weight_hh"].T + p["bias_hh"], 3, -1)
    n = jnp.tanh(x_n + jax.nn.sigmoid(x_r + h_r) * h_n)
    gate = jax.nn.sigmoid(x_z + h_z)
    h = n + gate * (h - n)
    return h, h


def lstm(p: Any, z: Any, state: Any) -> Any:
    h, c = state
    i, f, g, o = jnp.split(z + h @ p["weight_hh"].T, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def layer_norm_lstm(p: Any, z: Any, state: Any) -> Any:
    h, c = state
    from_h = norm(h @ p["weight_hh"].T, p["norm_h.weight"], p["norm_h.bias"])
    i, f, g, o = jnp.split(norm(z, p["norm_x.weight"], p["norm_x.bias"]) + from_h, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(norm(c, p["norm_c.weight"], p["norm_c.bias"]))
    return (h, c), h


def lif(p: Any, z: Any, state: Any) -> Any:
    v, s = state
    v = 0.9 * v + z + s @ p["weight_hh"].T - s
    s = spike(v - 1.0)
    return (v, s), s


STEPS: dict[str, tuple[Callable[..., Any], int]] = {
    "rnn": (rnn, 1), "gru": (gru, 1), "lstm": (lstm, 2), "layer-norm-lstm": (layer_norm_lstm, 2), "lif": (lif, 2),
}  # fmt: skip


def objective(name: str, hoisted: bool) -> Callable[..., Any]:
    """The loss whose gradient a round computes: the sum of all outputs, each times a given weight."""
    step, n_states = STEPS[name]

    def project(p: Any, x: Any) -> Any:
        z = x @ p["weight_ih"].T
        return z + p["bias"] if "bias" in p else z

    def loss(p: Any, x: Any, weight: Any) -> Any:
        zeros = jnp.zeros((x.shape[1], p["weight_hh"].shape[1]), x.dtype)
        start = (zeros,) * n_states if n_states > 1 else zeros
        if hoisted:
            _, y = jax.lax.scan(lambda state, z: step(p, z, state), start, project(p, x))
        else:
            _, y = jax.lax.scan(lambda state, x_t: step(p, project(p, x_t), state), start, x)
        return (y * weight).sum()

    return loss


def main() -> None:
    compiled: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if "run" in order:
            seconds = []
            for _ in range(2):
                started = time.perf_counter()
                jax.block_until_ready(compiled[order["run"]]())
                seconds.append(time.perf_counter() - started)
            answer: dict[str, Any] = {"seconds": seconds}
        else:
            given = dict(np.load(order["file"]))
            x, weight = jnp.asarray(given.pop("x")), jnp.asarray(given.pop("weight"))
            params = {key: jnp.asarray(value) for key, value in given.items()}
            answer = {"compile": {}, "value": {}, "gradient": {}}
            for way in ("plain", "hoisted"):
                function = jax.value_and_grad(objective(order["case"], way == "hoisted"), argnums=(0, 1))
                value, (_, d_x) = function(params, x[:CHECKED_STEPS], weight[:CHECKED_STEPS])
                answer["value"][way], answer["gradient"][way] = float(value), float(jnp.abs(d_x).sum())
                started = time.perf_counter()
                ready = jax.jit(function).lower(params, x, weight).compile()
                answer["compile"][way] = time.perf_counter() - started
                compiled[way] = functools.partial(ready, params, x, weight)
                jax.block_until_ready(compiled[way]())
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
