"""A loop over time under torch.compile, in a process of its own: one order per line in, one answer per line out.

`recurrent_peers.py` starts it. {"case": ..., "shape": [steps, batch, size]} compiles forward and backward and answers
with the seconds that took; {"run": "compiled"} answers with the seconds of one call. Inductor's caches are where
TORCHINDUCTOR_CACHE_DIR says, so that a second process only traces.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from recurrent_cases import READY, with_unbind


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    for line in sys.stdin:
        order = json.loads(line)
        started = time.perf_counter()
        if "case" in order:
            steps, batch, size = order["shape"]
            torch.manual_seed(0)
            cell = READY[order["case"]](size, size)
            x = torch.randn(steps, batch, size, requires_grad=True)
            loop = torch.compile(with_unbind(cell, cell.initial_state(batch)))
            weight = torch.randn(steps, batch, cell.hidden_size)
        else:  # as in recurrent.py: the second call is timed
            torch.autograd.grad(loop(x), [x, *cell.parameters()], weight)
            started = time.perf_counter()
        torch.autograd.grad(loop(x), [x, *cell.parameters()], weight)
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main()
