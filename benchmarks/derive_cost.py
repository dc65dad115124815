"""What a derived Function costs beside autograd: bytes kept for backward, time of forward and backward, from 1e5 elements on.

Called by `derive.py cost`. Each forward is derived on inputs of the size that is measured: what to keep depends on sizes. autograd, least bytes and `--fast` have a process each, and they take turns: a round is some steps
of each, and ratios are formed within a round, where all have seen the same machine. In one process a step would find the
memory that its neighbour has freed. One thread. All processes begin with a block of 32 MB that is freed at once, as a process
that has loaded or trained anything has done: until then glibc returns every larger block to the kernel, and what is measured is
how fast the kernel clears pages. `heap="fresh"` leaves that out.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WAYS = ("autograd", "least", "fast")
_STEPS = 3  # that are timed in a turn, after one that is not


def cost(*, only: str = "", heap: str = "used", rounds: int = 25, seconds: float = 12.0) -> None:
    """One line per forward, then the geometric means."""
    from derive_forwards import LARGE

    names = [fn.__name__ for fn in LARGE if not only or fn.__name__ in only.split(",")]
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        _write_derived(Path(folder), names)
        workers = {way: _started(way, folder, heap) for way in WAYS}
        for name in names:
            kept = {way: _asked(workers[way], f"bytes {name}") for way in WAYS}
            taken = _in_turns(workers, name, rounds, seconds)
            found[name] = {"kept": kept, "ratios": _ratios(taken)}
            print(_line(name, kept, taken, found[name]["ratios"]), flush=True)
        for worker in workers.values():
            worker.communicate()
    for way in WAYS[1:]:
        print(_summary(way, found))


def _summary(way: str, found: dict[str, dict[str, Any]]) -> str:
    middle = math.exp(statistics.fmean(math.log(f["ratios"][way][1]) for f in found.values()))
    total = {w: [sum(f["kept"][w][i] for f in found.values()) for i in (0, 1)] for w in WAYS}
    more = [name for name, f in found.items() if f["kept"][way][0] > f["kept"]["autograd"][0]]
    return (
        f"{way}: time {middle:.2f}x (geometric mean of medians), saved bytes {total[way][0] / total['autograd'][0]:.2f}x, "
        f"beyond inputs and outputs {total[way][1] / max(1, total['autograd'][1]):.2f}x, more bytes than autograd: {more or 'none'}"
    )


def _line(name: str, kept: dict[str, Any], taken: dict[str, list[list[float]]], ratios: dict[str, Any]) -> str:
    told = []
    for way in WAYS:
        forward, backward = (1e3 * statistics.median(t[i] for t in taken[way]) for i in (0, 1))
        low, middle, high = ratios[way]
        own = "" if way == "autograd" else f" {middle:.2f}x [{low:.2f}, {high:.2f}]"
        told.append(f"{way} {kept[way][0] / 1e6:.2f} MB {forward:.2f} + {backward:.2f} ms{own}")
    return f"{name:18} " + ", ".join(told)


def _ratios(taken: dict[str, list[list[float]]]) -> dict[str, tuple[float, float, float]]:
    """(lower quartile, median, upper quartile) of the ratios within a round."""
    found = {}
    for way, times in taken.items():
        each = sorted(sum(own) / sum(theirs) for own, theirs in zip(times, taken["autograd"]))
        low, middle, high = statistics.quantiles(each, n=4) if len(each) > 1 else [each[0]] * 3
        found[way] = (low, middle, high)
    return found


def _in_turns(workers: dict[str, Any], name: str, rounds: int, seconds: float) -> dict[str, list[list[float]]]:
    taken: dict[str, list[list[float]]] = {way: [] for way in workers}
    started = time.perf_counter()
    for number in range(rounds):
        for way, worker in workers.items():
            taken[way].append(_asked(worker, f"time {name}"))
        if number >= 6 and time.perf_counter() - started > seconds:
            break
    return taken


def _write_derived(folder: Path, names: list[str]) -> None:
    import torch
    from derive_forwards import LARGE

    from gradsmith.deriving.deriving import derived

    torch.set_num_threads(1)
    for fn in LARGE:
        for way in WAYS[1:] if fn.__name__ in names else ():
            torch.manual_seed(0)
            made = derived(fn, LARGE[fn](), {}, fast=way == "fast")
            (folder / f"{fn.__name__}_{way}.py").write_text(made.source, encoding="utf-8")


def _started(way: str, folder: str, heap: str) -> Any:
    command = [sys.executable, __file__, way, folder, heap]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def _asked(worker: Any, line: str) -> Any:
    worker.stdin.write(line + "\n")
    return json.loads(worker.stdout.readline())


# ---- in a process of its own


def answer(way: str, folder: Path, heap: str) -> None:
    """For every line that comes in, what it asks for."""
    import torch
    from derive_forwards import LARGE

    from gradsmith.native.memory import reuse_freed_pages

    torch.set_num_threads(1)
    if heap == "used":
        reuse_freed_pages()
    gc.disable()
    makers = {fn.__name__: (fn, build) for fn, build in LARGE.items()}
    ready: dict[str, tuple[Any, Any]] = {}
    for line in sys.stdin:
        what, name = line.split()
        if name not in ready:
            ready.clear()  # what an earlier one held is free again
            fn, build = makers[name]
            torch.manual_seed(0)
            ready[name] = (fn if way == "autograd" else _wrapper(folder / f"{name}_{way}.py", name), _single(build()))
        call, args = ready[name]
        print(json.dumps(kept_bytes(call, args) if what == "bytes" else _seconds(call, args)), flush=True)


def _wrapper(path: Path, name: str) -> Any:
    scope: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    return scope[name]


def _single(args: Any) -> list[Any]:
    """Leaves in float32."""
    import torch

    def fresh(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        return value.detach().float().requires_grad_(value.requires_grad)

    return [fresh(a) for a in args]


def kept_bytes(call: Any, args: Any) -> tuple[int, int]:
    """(bytes of every storage that is kept for backward, of those that are neither an input's nor an output's)"""
    import torch

    storages: dict[int, int] = {}
    alive = []

    def pack(tensor: Any) -> Any:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = call(*args)
    known = [*args, *(out if isinstance(out, tuple) else [out])]
    own = {t.untyped_storage().data_ptr() for t in known if isinstance(t, torch.Tensor)}
    return sum(storages.values()), sum(size for place, size in storages.items() if place not in own)


def _seconds(call: Any, args: Any) -> tuple[float, float]:
    """CPU time of forward and backward on one thread, the faster of some steps for each."""
    import torch

    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    best = [math.inf, math.inf]
    for number in range(1 + _STEPS):
        start = time.process_time()
        out = call(*args)
        live = [o for o in (out if isinstance(out, tuple) else [out]) if o.requires_grad]
        middle = time.process_time()
        weights = [torch.ones_like(o) for o in live]
        begun = time.process_time()
        torch.autograd.grad(live, leaves, weights)
        end = time.process_time()
        if number:
            best = [min(best[0], middle - start), min(best[1], end - begun)]
        del out, live
    return best[0], best[1]


if __name__ == "__main__":
    answer(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
