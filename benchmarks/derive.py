"""How many forwards that people wrote can be derived, and is any derivation wrong?

Run: python benchmarks/derive.py harvest FOLDER [--seed 0]     downloads packages into FOLDER, draws 120 forwards, keeps names and hashes
     python benchmarks/derive.py inputs FOLDER                  guesses inputs for each, before anything is derived; derive_inputs.py has those
                                                                written by hand where the guess failed
     python benchmarks/derive.py run FOLDER [--check]           derives each; --check also runs gs.check on what was derived
     python benchmarks/derive.py formulas                       40 formulas through `gradsmith new`
     python benchmarks/derive.py cost [--only NAME]             saved bytes and time against autograd, from 1e5 elements on
     python benchmarks/derive.py own [--check] [--only NAME]    the forwards of derive_forwards.py; prints the derived source

A forward is self-contained if it is a module-level function without a class around it, takes at least one tensor by the look
of its names, calls torch, and uses nothing of its package but other such functions. The code is never copied here: the list
keeps package, version, file, name and a hash.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import signal
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import derive_cost
import derive_harvest
from derive_inputs import BY_HAND, WITHOUT

FORMULAS = [
    "x * sigmoid(beta * x)",
    "x * tanh(softplus(x))",
    "exp(-x * x)",
    "log(1 + exp(x))",
    "sqrt(1 + x * x) - 1",
    "x / (1 + abs(x))",
    "a * sin(b * x)",
    "(x - y) ** 2",
    "abs(x - y)",
    "log(cosh(x - y))",
    "x * y + z",
    "x / sqrt(x * x + y * y)",
    "atan2(x, y)",
    "tanh(a * x + b)",
    "relu(x) ** 2",
    "0.5 * x * (1 + erf(x / sqrt(2)))",
    "exp(-abs(x - y) / s)",
    "x ** 3 - 3 * x",
    "sigmoid(x) * sigmoid(y)",
    "softmax(x, -1) * y",
    "log_softmax(x, -1)",
    "(x * y).sum(-1)",
    "x.mean(-1, keepdim=True) * y",
    "x @ y.mT",
    "logsumexp(x, -1)",
    "where(x > 0, x, a * x)",
    "clamp(x, -1, 1) * y",
    "maximum(x, y)",
    "minimum(x, y) * z",
    "sin(x) / x",
    "cos(2 * pi * x)",
    "x * exp(-x)",
    "1 / (1 + exp(-k * (x - m)))",
    "log(x) * y",
    "sqrt(x) + y",
    "x ** y",
    "elu(x) + 1",
    "silu(x) * y",
    "erf(x) * y",
    "x * rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w",
]


# ---- running


def run(folder: Path, *, check: bool, only: str = "") -> None:
    """One line per forward. What autograd itself cannot differentiate at the inputs is told apart from what we refuse."""
    results = []
    for item in json.loads((folder / "chosen.json").read_text(encoding="utf-8")):
        if only and not {item["hash"], item["name"]} & set(only.split(",")):
            continue
        start = time.process_time()
        line = {**item, **_outcome(folder, item, check=check), "seconds": 0.0}
        line["seconds"] = round(time.process_time() - start, 1)
        results.append(line)
        told = f"{line['outcome']:13} {item['package'][:20]:20} {item['name'][:34]:34} {line['seconds']:5}s"
        print(told, line.get("why", "")[:200], flush=True)
        if not only:
            (folder / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    counts = Counter(r["outcome"] for r in results)
    lines = sorted(r["lines"] for r in results if "lines" in r)
    asked = counts["derived"] + counts["refused"] + counts["crash"] + counts["wrong"]
    print(dict(counts))
    if lines:
        share = 100 * counts["derived"] / max(1, asked)
        print(f"derived {counts['derived']} of {asked} that have inputs and a derivative ({share:.0f} %)")
        print(f"median lines of backward: {lines[len(lines) // 2]}")


def guess(folder: Path, *, only: str = "") -> None:
    """One line per forward: has it inputs, and has autograd a derivative there? Nothing is derived."""
    counts: Counter[str] = Counter()
    for item in json.loads((folder / "chosen.json").read_text(encoding="utf-8")):
        if only and not {item["hash"], item["name"]} & set(only.split(",")):
            continue
        if item["hash"] in WITHOUT:
            counts["no derivative, by reading"] += 1
            continue
        outcome, why = "inputs by hand" if item["hash"] in BY_HAND else "inputs guessed", ""
        try:
            fn = loaded(folder, item)
            with _limited(60), contextlib.redirect_stdout(io.StringIO()):
                args, kwargs = inputs_of(folder, item, fn)
                why = without_derivative(fn, args, kwargs)
            outcome = f"{outcome}, no derivative" if why else outcome
        except Exception as error:
            outcome, why = "no inputs", f"{type(error).__name__}: {error}"
        counts[outcome] += 1
        print(f"{outcome:29} {item['hash']} {item['package'][:20]:20} {item['name'][:34]:34} {why[:200]}", flush=True)
    print(dict(counts))


def _outcome(folder: Path, item: dict[str, str], *, check: bool) -> dict[str, Any]:
    from gradsmith.deriving.deriving import derived
    from gradsmith.deriving.refusal import Refused
    from gradsmith.writing.derive import written

    if item["hash"] in WITHOUT:
        return {"outcome": "no derivative", "why": WITHOUT[item["hash"]]}
    try:
        fn = loaded(folder, item)
    except Exception as error:  # a default that is no part of what was harvested
        return {"outcome": "not loaded", "why": f"{type(error).__name__}: {error}"[:300]}
    try:
        with _limited(120), contextlib.redirect_stdout(io.StringIO()):
            args, kwargs = inputs_of(folder, item, fn)
            lacking = without_derivative(fn, args, kwargs)
            if lacking:
                return {"outcome": "no derivative", "why": lacking}
            made = written(fn, args, kwargs).derivation if check else derived(fn, args, kwargs)
    except Refused as refusal:
        return {"outcome": "refused", "why": str(refusal)[:300]}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        missing = "no inputs" in str(error) or "gradsmith_inputs" in str(error) or "has no working" in str(error)
        return {
            "outcome": "no inputs" if missing else "crash",
            "why": f"{type(error).__name__}: {error}"[:300],
        }
    (folder / "derived").mkdir(exist_ok=True)
    (folder / "derived" / f"{item['hash']}.py").write_text(made.source, encoding="utf-8")
    backward = made.source.split("def backward", 1)[1].split("\ndef ", 1)[0]
    by = {"inputs": "by hand"} if item["hash"] in BY_HAND else {}
    return {**by, "outcome": "derived", "lines": len(backward.strip().splitlines()) - 1, "saved": made.plan.nbytes}


def inputs_of(folder: Path, item: dict[str, str], fn: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Those written by hand, else what gradsmith guesses, kept in the folder: guessing takes longer than deriving, and is not what is measured."""
    import torch

    from gradsmith.findings import GradsmithError
    from gradsmith.writing.derive import _supplied

    if item["hash"] in BY_HAND:
        torch.manual_seed(0)
        return tuple(eval(BY_HAND[item["hash"]], {"torch": torch, "fn": fn})), {}
    kept = folder / "inputs" / f"{item['hash']}.pt"
    kept.parent.mkdir(exist_ok=True)
    if not kept.exists():
        try:
            found: Any = _supplied(fn)
        except GradsmithError as error:
            found = f"no inputs: {error}"
        try:
            torch.save(found, kept)
        except Exception:  # a function among the inputs: guessed again the next time
            kept.unlink(missing_ok=True)
            return tuple(found[0]), dict(found[1])
    found = torch.load(kept, weights_only=False)
    if isinstance(found, str):
        raise GradsmithError(found)
    return tuple(found[0]), dict(found[1])


def without_derivative(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why autograd has nothing to compare with at these inputs; "" where it has."""
    import torch

    def leaf(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(leaf(v) for v in value)
        return (
            value.detach().clone().requires_grad_()
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
        )

    def tensors(value: Any) -> list[Any]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (tuple, list)):
            return [t for v in value for t in tensors(v)]
        return [value] if isinstance(value, torch.Tensor) else []

    args, kwargs = leaf(list(args)), {k: leaf(v) for k, v in kwargs.items()}
    leaves = [t for t in tensors([args, kwargs]) if t.requires_grad]
    if not leaves:
        return "no input is a tensor of floating-point numbers"
    try:
        outputs = tensors(fn(*[a.view_as(a) if isinstance(a, torch.Tensor) else a for a in args], **kwargs))
    except Exception as error:
        return f"forward raises on inputs that require grad: {type(error).__name__}: {error}"
    live = [o for o in outputs if o.requires_grad]
    if not live:
        return "no output depends on an input in a way that autograd follows"
    total = sum(o.abs().double().sum() if o.is_complex() else o.double().sum() for o in live)
    try:
        grads = torch.autograd.grad(total, leaves, allow_unused=True)
    except RuntimeError as error:  # NotImplementedError is one
        return f"autograd has none: {error}"
    known = [g for g in grads if g is not None]
    weighted = any(bool((g != 0).any()) for g in known)
    if not weighted:  # a sum may be constant where its terms are not (softmax)
        total = sum(
            (o.abs() if o.is_complex() else o).double().mul(torch.rand(o.shape) + 0.5).sum()
            for o in tensors(fn(*args, **kwargs))
            if o.requires_grad
        )
        weighted = any(
            g is not None and bool((g != 0).any()) for g in torch.autograd.grad(total, leaves, allow_unused=True)
        )
    return "" if weighted else "every gradient is zero"


class _limited:
    """A forward that hangs is a result, too. CPU time counts: how busy the machine is says nothing of a forward."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def stop(*_: Any) -> None:
            raise TimeoutError(f"took longer than {self.seconds} s of CPU time")

        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def loaded(folder: Path, item: dict[str, str]) -> Any:
    path = folder / "sources" / f"m_{item['hash']}.py"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        for wheel in sorted((folder / "wheels").glob("*.whl")) if item["hash"] not in derive_harvest.SOURCES else ():
            derive_harvest.in_wheel(wheel)
        path.write_text(derive_harvest.SOURCES[item["hash"]], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, item["name"])


def formulas() -> None:
    from gradsmith.writing.new import new

    good = 0
    for i, text in enumerate(FORMULAS):
        try:
            new(f"formula_{i}", text=text)
            good += 1
        except Exception as error:
            print(f"{text}: {error}")
    print(f"{good} of {len(FORMULAS)} formulas verified")


def own(*, check: bool, only: str = "") -> None:
    """One line per forward of ours, and the derived source under it."""
    import torch
    from derive_forwards import INPUTS

    from gradsmith.deriving.deriving import derived
    from gradsmith.deriving.refusal import Refused
    from gradsmith.writing.derive import written

    counts: Counter[str] = Counter()
    for fn, build in INPUTS.items():
        if only and fn.__name__ not in only.split(","):
            continue
        torch.manual_seed(0)
        start, source = time.process_time(), ""
        try:
            made = written(fn, build(), {}).derivation if check else derived(fn, build(), {})
            outcome, source = "derived", made.source
        except Refused as refusal:
            outcome = f"refused: {refusal}"
        except Exception as error:
            outcome = f"crash: {type(error).__name__}: {error}"
        counts[outcome.partition(":")[0]] += 1
        print(f"{fn.__name__:20} {time.process_time() - start:5.1f} s CPU  {outcome}\n{source}", flush=True)
    print(dict(counts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__ or ""), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["harvest", "inputs", "run", "formulas", "own", "cost"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--more", action="store_true", help="harvest: from twice as many packages")
    parser.add_argument("--packages", nargs="*", default=[], help="harvest: from these instead")
    parser.add_argument("--count", type=int, default=derive_harvest.WANTED, help="harvest: how many are drawn")
    parser.add_argument(
        "--without", type=Path, nargs="*", default=[], help="harvest: folders whose forwards are not drawn"
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--heap", choices=["used", "fresh"], default="used", help="has the process freed a large block before?"
    )
    parser.add_argument("--only", default="", help="a name or hash")
    given = parser.parse_args()
    if given.what == "formulas":
        formulas()
    elif given.what == "cost":
        derive_cost.cost(only=given.only, heap=given.heap)
    elif given.what == "own":
        own(check=given.check, only=given.only)
    elif given.what == "harvest":
        derive_harvest.harvest(given.folder, given.seed, given.without, given.more, given.packages, given.count)
    elif given.what == "inputs":
        guess(given.folder, only=given.only)
    else:
        run(given.folder, check=given.check, only=given.only)


if __name__ == "__main__":
    main()
