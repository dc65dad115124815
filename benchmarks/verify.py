"""Does gradsmith find wrong gradients, name them rightly, and stay quiet on right ones?

    python benchmarks/verify.py [elements] [operators] [speed] [memory] [mutants]     (default: all; --quick for a sample)

One run, alternatives interleaved. Every table says how it was made.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from operators import operators
from torch import Tensor

import gradsmith as gs
from gradsmith.checking.options import Options
from gradsmith.checking.run import examine_supplied
from gradsmith.lab import resolve

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

PARTS = ["elements", "operators", "speed", "memory", "mutants"]

# --- one wrong element ---------------------------------------------------------------------------------------------


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[[], tuple[Tensor, ...]], int]] = {
    "linear 3x4->5": (torch.matmul, lambda: (normal(3, 4), normal(4, 5)), 1),
    "linear 20x20->30": (torch.matmul, lambda: (normal(20, 20), normal(20, 30)), 1),
    "linear 64x256->256": (torch.matmul, lambda: (normal(64, 256), normal(256, 256)), 1),
    "softmax 16x64": (lambda x: torch.softmax(x, -1), lambda: (normal(16, 64),), 0),
    "layer norm 16x64": (
        lambda x, w, b: F.layer_norm(x, (64,), w, b),
        lambda: (normal(16, 64), normal(64), normal(64)),
        0,
    ),
    "attention 2x8x16": (
        F.scaled_dot_product_attention,
        lambda: (normal(2, 8, 16), normal(2, 8, 16), normal(2, 8, 16)),
        1,
    ),
    "conv2d 2x3x9x9": (lambda x, w: F.conv2d(x, w, padding=1), lambda: (normal(2, 3, 9, 9), normal(4, 3, 3, 3)), 1),
    "exp(3x) 16x64": (lambda x: torch.exp(3 * x), lambda: (normal(16, 64),), 0),
    "relu 65536": (torch.relu, lambda: (normal(65536),), 0),
}


def corrupted(op: Callable[..., Tensor], which: int, index: int, factor: float) -> type[torch.autograd.Function]:
    """A Function whose backward is autograd's own, except for one element of one gradient."""

    class Corrupted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> Tensor:
            ctx.save_for_backward(*tensors)
            return op(*tensors)

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Any:
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_() for t in ctx.saved_tensors]
                grads = list(torch.autograd.grad(op(*leaves), leaves, grad_output))
            spoilt = grads[which].clone(memory_format=torch.contiguous_format)
            spoilt.view(-1)[index] *= factor
            grads[which] = spoilt
            return tuple(grads)

    return Corrupted


def elements(seeds: int) -> None:
    print(
        f"\n## One gradient element off, {seeds} seeds each (found / element named exactly; fast = gradcheck's fast mode)"
    )
    print(f"{'case':22} {'1 % found':>10} {'named':>8} {'fast':>6}   {'10 % found':>10} {'named':>8} {'fast':>6}")
    for name, (op, build, which) in CASES.items():
        cells = []
        for factor in (1.01, 1.10):
            found = named = fast = 0
            for seed in range(seeds):
                torch.manual_seed(seed)
                inputs = build()
                (grad,) = torch.autograd.grad(op(*inputs).sum(), inputs[which])
                live = (
                    torch.nonzero(grad.flatten().abs() > 1e-12).flatten()
                    if name.startswith("relu")
                    else torch.arange(grad.numel())
                )
                index = int(live[torch.randint(len(live), ())])
                subject = corrupted(op, which, index, factor)
                report = gs.check(subject, *inputs, level="quick", seed=seed, select=["wrong-gradient"])
                errors = [f for f in report.errors if f.rule == "wrong-gradient"]
                found += bool(errors)
                where = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), inputs[which].shape))
                named += any(tuple(f.evidence["element"]) == where for f in errors)
                if seed < 8:
                    fast += not torch.autograd.gradcheck(subject.apply, inputs, fast_mode=True, raise_exception=False)
            cells += [f"{found}/{seeds}", f"{named}/{seeds}", f"{fast}/{min(8, seeds)}"]
        print(
            f"{name:22} {cells[0]:>10} {cells[1]:>8} {cells[2]:>6}   {cells[3]:>10} {cells[4]:>8} {cells[5]:>6}",
            flush=True,
        )


# --- speed and memory ----------------------------------------------------------------------------------------------


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.mT if ctx.needs_input_grad[0] else None
        grad_weight = x.mT @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


def speed(rounds: int) -> None:
    inputs = (normal(32, 64), normal(64, 64))
    options = Options(level="quick", lint=False)
    from gradsmith.checking.run import examine
    from gradsmith.inputs.examples import Supply

    def ours() -> None:
        assert examine(resolve(Linear), Supply(((inputs, {}),), "given"), options).ok

    def theirs() -> None:
        torch.autograd.gradcheck(Linear.apply, inputs)

    ours()
    ratios = []
    for _ in range(rounds):
        start = time.perf_counter()
        ours()
        middle = time.perf_counter()
        theirs()
        ratios.append((middle - start) / (time.perf_counter() - middle))
    print("\n## Gradient and contract of linear 32x64->64, against gradcheck (slow mode) alone, interleaved")
    print(
        f"ratio {statistics.median(ratios):.4f} (min {min(ratios):.4f}, max {max(ratios):.4f}, {rounds} rounds; goal <= 0.05)"
    )


MEMORY = """
import resource, torch, gradsmith as gs, sys
sys.path.insert(0, {here!r})
import verify
from gradsmith.checking.run import check
x = (torch.randn(8, 8, dtype=torch.float64, requires_grad=True), torch.randn(8, 8, dtype=torch.float64, requires_grad=True))
check(verify.Linear, *x, level="quick")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = check(verify.Linear, verify.normal(64, 256), verify.normal(256, 256), level="quick")
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(report.ok, (after - before) / 2**20)
"""


def memory() -> None:
    from pathlib import Path

    script = MEMORY.format(here=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ok, gib = done.stdout.split()
    print("\n## Linear 64x256->256 (gradcheck needs 30 GiB)")
    print(f"verified: {ok}; peak above baseline {float(gib):.3f} GiB (goal < 1)")


# --- mutants -------------------------------------------------------------------------------------------------------

# Which diagnoses count as naming the mistake of an operator: a cause of wrong-gradient, or the rule that explains it.
NAMES: dict[str, set[str]] = {
    "sign": {"sign", "wrong-operator", "missing-term", "factor"},
    "constant": {"factor", "wrong-constant", "chain-factor", "missing-term", "broadcast-not-summed"},
    "swapped operands": {"wrong-operands", "sign", "transposed", "wrong-operator", "backward-raised", "gradient-shape"},
    "dropped term": {
        "missing-term",
        "chain-factor",
        "wrong-tensor",
        "factor",
        "grad-output-ignored",
        "ignored-grad-output",
        "mask",
        "zero",
    },
    "transpose": {"wrong-operands", "transposed", "backward-raised", "gradient-shape"},
    "swapped gradients": {
        "swapped",
        "backward-raised",
        "gradient-shape",
        "none-for-tensor",
        "wrong-tensor",
        "return-count",
    },
    "dropped gradient": {"return-count", "backward-raised"},
    "None gradient": {"none-for-tensor", "zero"},
    "ignored grad_output": {
        "grad-output-ignored",
        "ignored-grad-output",
        "output-ignored",
        "nonlinear-backward",
        "wrong-tensor",
        "chain-factor",
    },
    "unreduced broadcast": {
        "factor",
        "broadcast-not-summed",
        "gradient-shape",
        "backward-raised",
        "unreduced-broadcast",
        "wrong-operator",
    },
    "flipped comparison": {"wrong-comparison", "mask", "zero"},
    "wrong saved tensor": {
        "wrong-tensor",
        "chain-factor",
        "swapped",
        "backward-raised",
        "gradient-shape",
        "wrong-operands",
    },
    "lower precision": {"low-precision", "gradient-dtype"},
    "in-place write": {"inplace-grad", "inplace-saved"},
    "state": {"class-state", "not-repeatable"},
}


def mutants(limit: int) -> None:
    import mutants as nursery

    equivalent, broken = [], []
    for mutant in nursery.breed(limit):
        try:
            (equivalent if nursery.is_equivalent(mutant) else broken).append(mutant)
        except (KeyError, SyntaxError):
            continue  # inputs that are declared only where a package is installed
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    others: dict[str, Counter[str]] = {n: Counter() for n in ("gradcheck", "fast mode", "gradgradcheck", "opcheck")}
    as_ops = 0
    sound: dict[tuple[str, str], bool] = {}
    confusion: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for mutant in broken:
        module = nursery.load(mutant.source)
        cls = getattr(module, mutant.cls)
        report = examine_supplied(resolve(cls), Options(level="quick", lint=False), module)
        serious = [g for f in report.findings if f.severity in ("error", "warning") for g in (f, *f.symptoms)]
        total[mutant.operator] += 1
        found[mutant.operator] += bool(serious)
        names = {g.cause or g.rule for g in serious} | {g.rule for g in serious}
        if not serious:
            survivors.append(mutant.name)
        else:
            judged[mutant.operator] += 1
            right[mutant.operator] += bool(names & NAMES[mutant.operator])
            first = next((g.cause for g in serious if g.cause), serious[0].rule)
            confusion[mutant.operator][first] += 1
        builders = nursery.examples(module, mutant.cls)
        for name, verdict in _torch_says(cls, builders).items():
            others[name][mutant.operator] += verdict
        origin = (mutant.name.split(":")[0], mutant.cls)
        if origin not in sound:  # opcheck must accept the correct Function before its word on a mutant counts
            right_one = nursery.load(mutant.original)
            sound[origin] = (
                opcheck_objects(getattr(right_one, mutant.cls), nursery.examples(right_one, mutant.cls)[0]) is False
            )
        objects = opcheck_objects(cls, builders[0]) if sound[origin] else None
        as_ops += objects is not None
        others["opcheck"][mutant.operator] += bool(objects)
    n, k, ok, of = sum(total.values()), sum(found.values()), sum(right.values()), sum(judged.values())
    subjects = len({m.name.split(":")[0] for m in broken})
    print(f"\n## Mutants of {subjects} gallery Functions: {n} that differ, {len(equivalent)} equivalent (left out)")
    print(f"{'operator':22} {'n':>4} {'gradsmith':>9} {'named':>6} {'gradcheck':>9} {'fast':>5} {'gradgrad':>8}   said")
    for operator in total:
        said = ", ".join(f"{name} {count}" for name, count in confusion[operator].most_common(4))
        print(
            f"{operator:22} {total[operator]:>4} {found[operator]:>9} {right[operator]:>6} {others['gradcheck'][operator]:>9} "
            f"{others['fast mode'][operator]:>5} {others['gradgradcheck'][operator]:>8}   {said}"
        )
    print(
        f"detected {k} of {n} ({100 * k / n:.1f} %, goal 99); kind named for {ok} of {of} ({100 * ok / of:.1f} %, goal 85)"
    )
    for name, counts in others.items():
        of = as_ops if name == "opcheck" else n
        note = " (those that can be stated as a custom op)" if name == "opcheck" else ""
        print(f"{name} detects {sum(counts.values())} of {of}{note} ({100 * sum(counts.values()) / max(of, 1):.0f} %)")
    print("survivors:", ", ".join(survivors) or "none")


_OPS = itertools.count()


def opcheck_objects(cls: Any, build: Callable[[], Any]) -> bool | None:
    """Whether `torch.library.opcheck` objects to the Function stated as a custom op; None where it cannot be one."""
    from gradsmith.lab.subject.target import has_setup_context

    torch.manual_seed(0)
    args = build()
    kinds = {torch.Tensor: "Tensor", float: "float", int: "int", bool: "bool"}
    if has_setup_context(cls) or any(type(a) not in kinds for a in args):
        return None
    with torch.no_grad():
        sample = cls.apply(*[a.clone() if isinstance(a, Tensor) else a for a in args])
    if not isinstance(sample, Tensor):
        return None

    def remember(ctx: Any, inputs: Any, output: Any) -> None:
        cls.forward(ctx, *inputs)

    names = [f"a{i}" for i in range(len(args))]
    signature = ", ".join(f"{n}: {kinds[type(a)]}" for n, a in zip(names, args))
    scope: dict[str, Any] = {
        "Tensor": Tensor,
        "run": lambda *a: cls.apply(*[t.detach().clone() if isinstance(t, Tensor) else t for t in a]),
    }
    exec(f"def op({signature}) -> Tensor:\n    return run({', '.join(names)}).clone()", scope)
    try:
        op = torch.library.custom_op(f"gradsmith_bench::m{next(_OPS)}", scope["op"], mutates_args=())
        op.register_fake(lambda *a: torch.empty_strided(sample.shape, sample.stride(), dtype=sample.dtype))
        op.register_autograd(cls.backward, setup_context=remember)
        results = torch.library.opcheck(op, args, raise_exception=False)
    except Exception:
        return True
    return any(verdict != "SUCCESS" for verdict in results.values())


def _torch_says(cls: Any, builders: list[Callable[[], Any]]) -> dict[str, bool]:
    """Whether torch's own checkers object on any of the declared examples."""
    says = dict.fromkeys(("gradcheck", "fast mode", "gradgradcheck"), False)
    for build in builders:
        for name, tool in (
            ("gradcheck", lambda i: torch.autograd.gradcheck(cls.apply, i)),
            ("fast mode", lambda i: torch.autograd.gradcheck(cls.apply, i, fast_mode=True)),
            ("gradgradcheck", lambda i: torch.autograd.gradgradcheck(cls.apply, i, fast_mode=True)),
        ):
            torch.manual_seed(0)
            try:
                tool(build())
            except Exception:
                says[name] = True
    return says


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=f"which tables, of {PARTS} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="a sample of each")
    parser.add_argument("--explored", action="store_true", help="operators: one sample each, explored")
    chosen = parser.parse_args()
    quick: bool = chosen.quick
    parts = chosen.parts or PARTS
    quiet = True
    if "elements" in parts:
        elements(8 if quick else 40)
    if "operators" in parts:
        if chosen.explored:
            quiet = operators(1, 1, 8 if quick else 1, "standard")
        else:
            quiet = operators(1 if quick else 4, 1 if quick else 3, 8 if quick else 1)
    if "speed" in parts:
        speed(2 if quick else 5)
    if "memory" in parts:
        memory()
    if "mutants" in parts:
        mutants(1 if quick else 2)
    raise SystemExit(not quiet)


if __name__ == "__main__":
    main()
