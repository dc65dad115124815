"""How many wrong Functions does `gs.check` mend, and is any repair wrong?

    python benchmarks/repair.py [--count 60] [--seed 11] [--fresh] [--only PART] [--json OUT] [--goal 0.8]

Right Functions (the gallery's, and derived ones) are broken by script: at most one in three by a single token, the others by a
missing term, several missing factors, a wrong reduction, None or zeros, a whole wrong backward, or none at all. `--fresh` takes
the Functions of `repair_fresh/` instead, whose mistakes were written by hand, before the first run. What is mended is
the file after the edits of the findings. Whether it is right is decided here without gradsmith: autograd of the plain forward, at
the declared inputs drawn anew, at other sizes, broadcasts, in float32 and with single inputs that require grad. A repair is wrong
if one of its gradients differs there, or if it raises, where the Function before it was broken does not.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mutants import GALLERY, OPERATORS, _is_subject, _with, load
from repair_breaking import BREAKERS
from repair_forwards import DRAWS, DRAWS_SOURCE, INPUTS

SINGLE = "single token"


@dataclass(frozen=True)
class Broken:
    name: str
    kind: str
    cls: str
    source: str
    original: str


class Ctx:
    """Stands for ctx while a plain forward runs under autograd."""

    needs_input_grad = (True,) * 32

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def plain(cls: Any) -> Any:
    """The forward as a plain function."""
    has_setup = cls.setup_context is not torch.autograd.Function.setup_context
    return cls.forward if has_setup else lambda *args: cls.forward(Ctx(), *args)


def results(call: Any, args: list[Any], wanted: set[int]) -> list[torch.Tensor]:
    """Outputs and gradients for fixed grad_outputs."""
    given = [
        a.detach().clone().requires_grad_(i in wanted) if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for i, a in enumerate(args)
    ]
    leaves = [given[i] for i in sorted(wanted)]
    torch.manual_seed(1)
    out = call(*[a.view_as(a) if isinstance(a, torch.Tensor) else a for a in given])
    outputs = [
        o for o in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(o, torch.Tensor) and o.requires_grad
    ]
    draw = torch.Generator().manual_seed(2)
    vs = [torch.randn(o.shape, dtype=torch.float64, generator=draw).to(o.dtype) for o in outputs]
    grads = torch.autograd.grad(outputs, leaves, vs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]


def examples(module: Any, cls: str) -> Iterator[tuple[list[Any], set[int], float]]:
    """(arguments, which require grad, tolerance): the declared inputs drawn anew, resized, broadcast, cast, one at a time."""
    entry = module.gradsmith_inputs[cls]
    entry = entry if isinstance(entry, list) else [entry]
    for build in [*entry, *getattr(module, "ELSEWHERE", ())]:
        for seed in (0, 1, 2):
            torch.manual_seed(seed)
            args = list(build())
            wanted = {i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad}
            args = [a.detach().double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
            yield args, wanted, 1e-6
            for i in wanted if len(wanted) > 1 else ():
                yield args, {i}, 1e-6
            if seed == 0:
                yield from ((varied, wanted, 1e-6) for varied in resized(args))
                yield (
                    [a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args],
                    wanted,
                    5e-3,
                )


def resized(args: list[Any]) -> Iterator[list[Any]]:
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    for size in sorted({s for t in tensors for s in t.shape}):
        for new in (size + 1, 2 * size, 1):
            yield [_with_size(a, size, new) if isinstance(a, torch.Tensor) else a for a in args]
    for i, a in enumerate(args):
        if isinstance(a, torch.Tensor) and a.is_floating_point():
            for dim in range(a.ndim):
                yield [*args[:i], a.narrow(dim, 0, 1).clone(), *args[i + 1 :]]
            yield [*args[:i], torch.stack([a, a * 1.1]), *args[i + 1 :]]


def _with_size(t: torch.Tensor, old: int, new: int) -> torch.Tensor:
    for dim in range(t.ndim):
        if t.shape[dim] == old:
            t = t.index_select(dim, torch.arange(new) % old)
            if t.is_floating_point():
                t = t * (1 + 0.1 * torch.rand(t.shape, dtype=t.dtype, generator=torch.Generator().manual_seed(3)))
    return t


def compared(cls: Any, truth: Any, args: list[Any], wanted: set[int], rtol: float) -> str:
    """right, wrong, raises, or not judged."""
    try:
        expected = results(truth, args, wanted)
        if not all(bool(torch.isfinite(t).all()) for t in expected):
            return "not judged"
    except Exception:
        return "not judged"
    try:
        found = results(cls.apply, args, wanted)
    except Exception:
        return "raises"
    close = [
        a.shape == b.shape
        and torch.allclose(a, b, rtol=rtol, atol=rtol * max(float(a.abs().max()) if a.numel() else 0.0, 1e-6))
        for a, b in zip(expected, found)
    ]
    return "right" if all(close) else "wrong"


def judged(source: str, original: str, cls: str) -> str:
    """right; or the first thing that is not, where the Function before it was broken is right."""
    before, after = load(original), load(source)
    old, new = getattr(before, cls), getattr(after, cls)
    truth = plain(old)
    for number, (args, wanted, rtol) in enumerate(examples(before, cls)):
        if compared(old, truth, args, wanted, rtol) == "right":
            outcome = compared(new, truth, args, wanted, rtol)
            if outcome != "right":
                shapes = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
                return f"{outcome} at example {number}, sizes {shapes}, gradients {sorted(wanted)}"
    return "right"


def right_ones() -> Iterator[tuple[str, str, ast.ClassDef]]:
    """(name, source, class) of every Function whose gradient is autograd's: the gallery's, and those that are derived."""
    import gradsmith as gs

    for path in sorted(p for p in GALLERY.rglob("*.py") if p.parent.name not in ("kernels", "foreign", "control")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and _is_subject(node, source):
                yield path.stem, source, node
    for forward, code in INPUTS.items():
        torch.manual_seed(0)
        made = gs.derive(forward, *eval(code, dict(DRAWS)), level="quick")
        node = next(n for n in ast.parse(made).body if isinstance(n, ast.ClassDef))
        source = f'{made}{DRAWS_SOURCE}\ngradsmith_inputs = {{"{node.name}": lambda: {code}}}\n'
        yield forward.__name__, source, next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef))


def bred(count: int, seed: int) -> list[Broken]:
    """`count` wrong Functions, one third by a single token, the kinds in turn."""
    chooser = random.Random(seed)
    right = [r for r in right_ones() if _is_autograds(r)]
    kinds = [*BREAKERS, SINGLE, SINGLE, SINGLE]
    found: list[Broken] = []
    tried = 0
    while len(found) < count and tried < 40 * count:
        tried += 1
        name, source, node = chooser.choice(right)
        kind = kinds[len(found) % len(kinds)]
        broken = _broken(source, node, kind, chooser)
        if (
            broken is None
            or any(b.source == broken for b in found)
            or sum(b.cls == node.name for b in found) > count // 12
        ):
            continue
        try:
            if judged(broken, source, node.name) != "right":
                found.append(Broken(f"{name}.{node.name}", kind, node.name, broken, source))
        except Exception:
            continue
    return found


FRESH = Path(__file__).parent / "repair_fresh"


def fresh() -> list[Broken]:
    """The Functions of `repair_fresh/`, broken as each file says. One that is not wrong, or not right before, is an error."""
    found = []
    for path in sorted(p for p in FRESH.glob("*.py") if p.stem != "__init__"):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        module = load(source)
        about = [n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) in ("KIND", "WRONG")]
        elsewhere = [n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "ELSEWHERE"]
        cls = next(n.name for n in tree.body if isinstance(n, ast.ClassDef))
        right, wrong = _without(source, about), _without(source, [*about, *elsewhere])
        for old, new in module.WRONG:
            assert wrong.count(old) == 1, f"{path.name}: {old!r} stands there {wrong.count(old)} times"
            wrong = wrong.replace(old, new)
        assert judged(right, right, cls) == "right" and _is_autograds((path.stem, right, ast.ClassDef(cls)))
        assert judged(wrong, right, cls) != "right", f"{path.name} is not wrong"
        found.append(Broken(f"{path.stem}.{cls}", module.KIND, cls, wrong, right))
    return found


def _without(source: str, nodes: list[Any]) -> str:
    gone = {i for n in nodes for i in range(n.lineno, n.end_lineno + 1)}
    return "".join(line for i, line in enumerate(source.splitlines(keepends=True), 1) if i not in gone)


def _is_autograds(item: tuple[str, str, ast.ClassDef]) -> bool:
    module = load(item[1])
    cls = getattr(module, item[2].name)
    args, wanted, rtol = next(examples(module, item[2].name))
    return compared(cls, plain(cls), args, wanted, rtol) == "right"


def _broken(source: str, node: ast.ClassDef, kind: str, chooser: random.Random) -> str | None:
    if kind == SINGLE:
        operator = chooser.choice([o for o in OPERATORS if o not in ("inplace", "state", "low-precision")])
        changes = list(OPERATORS[operator](node))
        tree = ast.parse(source)
        own = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == node.name)
        return _with(source, tree, own, chooser.choice(changes)) if changes else None
    made = BREAKERS[kind](node, chooser)
    if made is None:
        return None
    lines = source.splitlines(keepends=True)
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return "".join([*lines[: first - 1], ast.unparse(made) + "\n", *lines[node.end_lineno :]])


def mended(broken: Broken) -> tuple[str, str, str]:
    """(outcome, what was said, source): mended rightly or wrongly, or not mended."""
    import gradsmith as gs
    from gradsmith.source.edits import apply

    module = load(broken.source)
    report = gs.check(getattr(module, broken.cls))
    offers = [f for f in report.findings if f.edits and f.evidence.get("repair")]
    if not offers:
        said = "; ".join(f"{f.rule}/{f.cause}" for f in report.findings if f.severity == "error")
        return "not mended", f"{report.subjects[0].verdict}: {said or report.subjects[0].reason}", ""
    best = offers[0]
    after = apply(broken.source, best.edits)
    told = f"{best.rule}, {'derived' if best.evidence['repair']['derived'] else 'small'}, {best.applicability}"
    outcome = judged(after, broken.original, broken.cls)
    return ("right" if outcome == "right" else f"WRONG: {outcome}"), told, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--fresh", action="store_true", help="the Functions of repair_fresh/")
    parser.add_argument("--only", default="", help="part of a name or kind")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--goal", type=float)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for number, broken in enumerate(fresh() if chosen.fresh else bred(chosen.count, chosen.seed)):
        if chosen.only not in f"{number} {broken.name} {broken.kind}":
            continue
        start = time.process_time()
        try:
            outcome, told, after = mended(broken)
        except Exception as error:
            outcome, told, after = "not mended", f"gradsmith failed: {type(error).__name__}: {error}", ""
        seconds = time.process_time() - start
        rows.append({"number": number, "name": broken.name, "kind": broken.kind, "outcome": outcome, "told": told,
                     "seconds": round(seconds, 1), "broken": broken.source, "mended": after})  # fmt: skip
        print(
            f"{number:>3} {broken.name:<40} {broken.kind[:40]:<16} {outcome:<12} {told} ({seconds:.1f} s CPU)",
            flush=True,
        )
        if chosen.json:
            chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    right = sum(r["outcome"] == "right" for r in rows)
    wrong = sum(r["outcome"].startswith("WRONG") for r in rows)
    for kind in dict.fromkeys(r["kind"] for r in rows):
        each = Counter(r["outcome"].partition(":")[0] for r in rows if r["kind"] == kind)
        print(f"{kind:<16} {dict(each)}")
    print(f"{right} of {len(rows)} mended rightly ({right / max(len(rows), 1):.0%}), {wrong} wrong repairs")
    if chosen.goal is not None:
        raise SystemExit(right < chosen.goal * len(rows) or wrong > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(inspect.getfile(main)).parent))
    main()
