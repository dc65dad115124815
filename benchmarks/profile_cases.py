"""Slow and fast versions of the same thing: does the profiler name the right cause on the right line, and how well does
it predict the gain? Run `python benchmarks/profile_cases.py`; it ends with the figures and exit status 1 if one is missed.

Each file in profile_pairs/ holds `slow`, `fast`, `inputs()` and the CAUSES of which one must be named as a warning, on a
line marked `# <-`. Predictions are taken from the finding, before the fast version is run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

import torch

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.lab import resolve
from gradsmith.profiling.bench import Bench
from gradsmith.profiling.clock import interleaved, ratio

PAIRS = Path(__file__).with_name("profile_pairs")
FAMILIES = {rule.name: rule.family for rule in rules().values()}


@dataclass
class Outcome:
    """What became of one pair."""

    name: str
    named: bool = False
    silent: bool = False
    predicted: float = math.nan
    measured: float = math.nan
    medians: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def close(self) -> bool:
        return 0.5 <= self.predicted / self.measured <= 2.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    outcomes = []
    for path in sorted(PAIRS.glob("*.py")):
        if options.names and path.stem not in options.names:
            continue
        outcomes.append(judge(_loaded(path)))
        _show(outcomes[-1])
    named, silent = sum(o.named for o in outcomes), sum(o.silent for o in outcomes)
    close = sum(o.close for o in outcomes)
    wall, off = (statistics.median(abs(o.medians[i] - 1) for o in outcomes) for i in (0, 1))
    within = sum(abs(o.medians[1] - 1) <= 0.1 for o in outcomes)
    n = len(outcomes)
    print(f"cause and line named: {named} of {n}; fast ones silent: {silent} of {n}")
    print(f"predictions within a factor 2: {close} of {n} ({close / n:.0%})")
    print(
        f"medians against an unobserved run: {wall:.1%} off on the wall, {off:.1%} in time worked; {within} of {n} within 10 %"
    )
    if options.json:
        options.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=2))
    missed = named < n - 2 or silent < n or close < 0.7 * n or off > 0.1
    sys.exit(1 if missed and not options.names else 0)


def judge(module: ModuleType) -> Outcome:
    """Profile both versions, then measure what changing one into the other really gains."""
    path = Path(str(module.__file__))
    outcome = Outcome(path.stem)
    torch.manual_seed(0)
    profile = gs.profile(module.slow, *module.inputs())
    marked = {i for i, text in enumerate(path.read_text().splitlines(), 1) if "# <-" in text}
    warnings = [f for f in profile.findings if f.severity == "warning"]
    outcome.said = [f"{f.rule}:{f.line}" for f in warnings]
    right = [f for f in warnings if f.rule in module.CAUSES and f.line in marked]
    outcome.named = bool(right)
    memory = getattr(module, "MEMORY", False)
    outcome.predicted = _combined(right, memory)
    quick = gs.profile(module.fast, *module.inputs())
    allowed = getattr(module, "FAST_MAY_SAY", ())
    loud = [f for f in quick.findings if f.severity == "warning" and FAMILIES[f.rule] in ("speed", "recurrent")]
    outcome.silent = all(f.rule in allowed for f in loud)
    outcome.said += [f"fast {f.rule}:{f.line}" for f in loud]
    outcome.measured = profile.saved_bytes / quick.saved_bytes if memory else _gain(module)
    outcome.medians = _agreement(module)
    return outcome


def _combined(findings: list[gs.Finding], memory: bool) -> float:
    """Several findings of the right cause are several parts of the time that go: their shares add up."""
    if memory:
        return max((f.evidence.get("saved_gain", math.nan) for f in findings), default=math.nan)
    gains = [f.evidence.get("predicted_gain", math.nan) for f in findings]
    if not gains:
        return math.nan
    return gains[0] if len(gains) == 1 else 1 / max(0.02, 1 - sum(1 - 1 / g for g in gains))


def _gain(module: ModuleType) -> float:
    benches = [Bench.of(resolve(x), tuple(module.inputs()), {}) for x in (module.slow, module.fast)]
    for bench in benches:
        bench.first()
    slow, fast = interleaved(benches, 1.5)
    return ratio(slow.work, fast.work).value


def _agreement(module: ModuleType) -> list[float]:
    """Reported medians over those of a plain loop that gradsmith has no part in: on the wall, and worked."""
    reported, plain = [], []
    for _ in range(5):
        profile = gs.profile(module.slow, *module.inputs(), budget=0.8, growth=False, select=["run"])
        reported.append((profile.total_s, profile.work_s))
        plain.append(_plain(module))
    return [statistics.median(r[i] for r in reported) / statistics.median(p[i] for p in plain) for i in (0, 1)]


def _plain(module: ModuleType, seconds: float = 0.2) -> tuple[float, float]:
    call = module.slow.apply if hasattr(module.slow, "apply") and isinstance(module.slow, type) else module.slow
    parameters = list(call.parameters()) if isinstance(call, torch.nn.Module) else []
    samples: list[tuple[float, float]] = []
    grads: list[torch.Tensor] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 7:
        torch.manual_seed(0)
        args = module.inputs()
        leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad] + parameters
        worked, start = time.thread_time(), time.perf_counter()
        out = call(*args)
        forward = (time.perf_counter() - start, time.thread_time() - worked)
        grads = grads or [torch.randn_like(out)]
        fresh = [g.clone() for g in grads]
        worked, start = time.thread_time(), time.perf_counter()
        torch.autograd.grad(out, leaves, fresh, allow_unused=True)
        backward = (time.perf_counter() - start, time.thread_time() - worked)
        samples.append((forward[0] + backward[0], forward[1] + backward[1]))
    return statistics.median(s[0] for s in samples[2:]), statistics.median(s[1] for s in samples[2:])


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"pair_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _show(o: Outcome) -> None:
    marks = (
        f"{'named' if o.named else 'MISSED':<7}{'silent' if o.silent else 'LOUD':<7}{'close' if o.close else 'far':<6}"
    )
    print(
        f"{o.name:<18}{marks} predicted {o.predicted:5.2f} measured {o.measured:5.2f}  {' '.join(o.said)}", flush=True
    )


if __name__ == "__main__":
    main()
