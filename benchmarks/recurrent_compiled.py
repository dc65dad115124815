"""A loop over time under torch.compile, in a process of its own: one order per line in, one answer per line out.

`recurrent_peers.py` starts it. {"case": ..., "shape": [steps, batch, size]} compiles forward and backward and answers
with the CPU seconds that took, those of the compilers it started included; {"run": "compiled"} answers with the seconds of
two calls in a row. Inductor's caches are where TORCHINDUCTOR_CACHE_DIR says, so that a second process only traces.
"""

from __future__ import annotations

import json
import os
import sys
import time

import torch
from recurrent_cases import READY, with_unbind


def cpu_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    for line in sys.stdin:
        order = json.loads(line)
        if "case" in order:
            begun = cpu_seconds()
            steps, batch, size = order["shape"]
            torch.manual_seed(0)
            cell = READY[order["case"]](size, size)
            x = torch.randn(steps, batch, size, requires_grad=True)
            loop = torch.compile(with_unbind(cell, cell.initial_state(batch)))
            weight = torch.randn(steps, batch, cell.hidden_size)
            torch.autograd.grad(loop(x), [x, *cell.parameters()], weight)
            seconds = [cpu_seconds() - begun]
        else:
            seconds = []
            for _ in range(2):
                started = time.perf_counter()
                torch.autograd.grad(loop(x), [x, *cell.parameters()], weight)
                seconds.append(time.perf_counter() - started)
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
