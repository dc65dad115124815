"""Memory of a check of large inputs, and time of a check of many: peak resident memory over the data, in a child process.

python benchmarks/large_inputs.py [--elements 100000000] [--inputs 100] [--level quick]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

LARGE = """
import json, resource, sys, threading, time
import torch
import gradsmith as gs

torch.set_num_threads(1)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


n, level = int(sys.argv[1]), sys.argv[2]
gs.check(Swish, torch.randn(4, 3, requires_grad=True), level=level)  # what is loaded once is not the data's
x = torch.randn(n, requires_grad=True)
before = peak()
with torch.no_grad():
    resident = int(open("/proc/self/statm").read().split()[1]) * 4096 - 4 * n
out = torch.autograd.grad(Swish.apply(x).sum(), x)
alone = peak() - resident
del out
started = time.process_time()
report = gs.check(Swish, x, level=level)
print(json.dumps({
    "data": 4 * n, "peak": peak() - resident, "alone": alone, "seconds": time.process_time() - started,
    "verdict": report.subjects[0].verdict, "reason": report.subjects[0].reason, "notes": report.notes,
    "findings": [f.rule for f in report.findings],
}))
"""

MANY = """
import json, sys, time
import torch
import gradsmith as gs

torch.set_num_threads(1)


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *xs):
        ctx.save_for_backward(*xs)
        return sum((i + 1) * x.sin() for i, x in enumerate(xs))

    @staticmethod
    def backward(ctx, grad_output):
        return tuple(grad_output * (i + 1) * x.cos() for i, x in enumerate(ctx.saved_tensors))


count, level = int(sys.argv[1]), sys.argv[2]
xs = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(count)]
gs.check(Sum, *xs[:2], level=level)  # what is loaded once is not theirs
started, worked = time.perf_counter(), time.process_time()
report = gs.check(Sum, *xs, level=level)
print(json.dumps({
    "seconds": time.perf_counter() - started, "worked": time.process_time() - worked,
    "verdict": report.subjects[0].verdict, "reason": report.subjects[0].reason,
}))
"""


def measured(code: str, *words: object) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"exit status {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=100_000_000)
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--level", default="quick")
    given = parser.parse_args()
    large = measured(LARGE, given.elements, given.level)
    times = float(str(large["peak"])) / float(str(large["data"]))
    alone = float(str(large["alone"])) / float(str(large["data"]))
    print(
        f"{given.elements:.0e} float32 elements, level {given.level}: peak {times:.1f}x of the data (goal 12x; forward and"
    )
    print(f"backward alone {alone:.1f}x), {large['seconds']:.1f} s of CPU, {large['verdict']} {large['reason']}")
    many = measured(MANY, given.inputs, "standard")
    print(f"{given.inputs} inputs, level standard: {many['seconds']:.1f} s, {many['worked']:.1f} s of CPU (goal 20 s),")
    print(f"{many['verdict']} {many['reason']}")
    sys.exit(times > 12 or float(str(many["worked"])) > 20)


if __name__ == "__main__":
    main()
