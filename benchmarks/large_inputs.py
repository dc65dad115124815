"""Memory of a check of large inputs, and time of a check of many: peak resident memory over the data, in a child process.

python benchmarks/large_inputs.py [--only large | many] [--elements 100000000] [--functions Swish ...] [--inputs 100]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

LARGE = """
import json, resource, sys, time
import torch
import gradsmith as gs

torch.set_num_threads(1)


class Swish(torch.autograd.Function):  # element by element
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class Squares(torch.autograd.Function):  # a reduction
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output.unsqueeze(-1)


class Product(torch.autograd.Function):  # two inputs
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


class Softmax(torch.autograd.Function):  # saves its output
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))


SHAPES = {
    Swish: lambda n: [(n,)],
    Squares: lambda n: [(n // 100, 100)],
    Product: lambda n: [(n // 2,), (n // 2,)],
    Softmax: lambda n: [(n // 100, 100)],
}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


n, level, fn = int(sys.argv[1]), sys.argv[2], globals()[sys.argv[3]]
inputs = lambda n: [torch.randn(*shape, requires_grad=True) for shape in SHAPES[fn](n)]
gs.check(fn, *inputs(1000), level=level)  # what is loaded once is not the data's
xs = inputs(n)
resident = int(open("/proc/self/statm").read().split()[1]) * 4096 - 4 * n
out = torch.autograd.grad(fn.apply(*xs).sum(), xs)
alone = peak() - resident
del out
started = time.process_time()
report = gs.check(fn, *xs, level=level)
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
    parser.add_argument("--only", choices=("large", "many"))
    parser.add_argument("--functions", nargs="*", default=["Swish", "Squares", "Product", "Softmax"])
    given = parser.parse_args()
    held = True
    for name in given.functions if given.only != "many" else ():
        large = measured(LARGE, given.elements, given.level, name)
        data = float(str(large["data"]))
        times, alone = float(str(large["peak"])) / data, float(str(large["alone"])) / data
        print(
            f"{name}, {given.elements:.0e} float32 elements, level {given.level}: peak {times:.1f}x of the data (goal 12x; forward "
            f"and backward alone {alone:.1f}x), {large['seconds']:.1f} s of CPU, {large['verdict']} {large['reason']}",
            flush=True,
        )
        held = held and times <= 12 and large["verdict"] == "verified"
    if given.only != "large":
        many = measured(MANY, given.inputs, "standard")
        print(
            f"{given.inputs} inputs, level standard: {many['seconds']:.1f} s, {many['worked']:.1f} s of CPU (goal 20 s), "
            f"{many['verdict']} {many['reason']}"
        )
        held = held and float(str(many["worked"])) <= 20
    sys.exit(not held)


if __name__ == "__main__":
    main()
