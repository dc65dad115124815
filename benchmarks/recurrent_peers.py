"""Alternatives that need a process of their own, asked for one call at a time so that they take part in every round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recurrent_cases import Case

HERE = Path(__file__).parent
IN_JAX = ("rnn", "gru", "lstm", "layer-norm-lstm", "lif")
CHECKED_STEPS = 8  # as in recurrent_jax.py


class Worker:
    """A process that answers orders, one JSON line each; it may use as many cores as `threads`."""

    def __init__(self, command: list[str], threads: int, **environment: str) -> None:
        cores = set(sorted(os.sched_getaffinity(0))[:threads])
        given = {**os.environ, **environment, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, sorted(cores))), *command],
            env=given, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} ended instead of answering {order}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Jax:
    """`jax.lax.scan` under jit and value_and_grad, plain and hoisted: the better one counts."""

    def __init__(self, python: str, threads: int) -> None:
        flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
        self.worker = Worker([python, str(HERE / "recurrent_jax.py")], threads, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")

    def prepare(self, name: str, case: Case) -> float:
        """Compile for this case, compare the first steps with ours, and return the seconds of the quicker compilation."""
        weight = torch.randn_like(case.ways["gradsmith"](case.x))
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "case.npz")
            named = {key: value.detach().numpy() for key, value in case.named.items()}
            np.savez(file, x=case.x.detach().numpy(), weight=weight.numpy(), **named)
            answer = self.worker.ask(case=name, file=file)
        x = case.x.detach()[:CHECKED_STEPS].requires_grad_()
        value = (case.ways["gradsmith"](x) * weight[:CHECKED_STEPS]).sum()
        (gradient,) = torch.autograd.grad(value, [x])
        ours = torch.tensor([float(value.detach()), float(gradient.abs().sum())])
        for way in ("plain", "hoisted"):
            theirs = torch.tensor([answer["value"][way], answer["gradient"][way]])
            torch.testing.assert_close(theirs, ours, rtol=1e-3, atol=1e-2, msg=lambda m: f"JAX differs in {name}: {m}")
        return float(min(answer["compile"].values()))

    def twice(self, way: str) -> tuple[float, float]:
        first, second = self.worker.ask(run=way)["seconds"]
        return first, second


class Compiled:
    """torch.compile of the loop with `unbind`."""

    def __init__(self, threads: int, cache: str) -> None:
        command = [sys.executable, str(HERE / "recurrent_compiled.py"), str(threads)]
        # Compilers are started by the process itself, one after the other, so that their CPU time is counted.
        self.worker = Worker(command, threads, TORCHINDUCTOR_CACHE_DIR=cache, TORCHINDUCTOR_COMPILE_THREADS="1")

    def prepare(self, name: str, shape: tuple[int, int, int]) -> float:
        """CPU seconds until it has run once."""
        return float(self.worker.ask(case=name, shape=shape)["seconds"][0])

    def twice(self) -> tuple[float, float]:
        first, second = self.worker.ask(run="compiled")["seconds"]
        return first, second


def settle(worked: float = 0.0) -> None:
    """Threads of the side that ran last may still be spinning for work.

    Linux stops real-time threads that work for more than 95% of a second: a tenth of what was worked keeps them below it.
    """
    time.sleep(0.005 + worked / 10)
