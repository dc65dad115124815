"""Mutants whose declared inputs hide the mistake: does gradsmith look beyond them?

    python benchmarks/impoverished.py [--sample N] [--seed S] [--per-mutant 2] [--limit 3] [--jobs 2] [--level standard] [--json OUT]

Every mutant of mutants.py (a gallery Function broken by one generic change of its source) gets its declared inputs made poor
by script (see poverties.py), one step and then two, until torch's gradcheck in float64 passes for the mutant, while it
fails at the inputs as they were declared, and passes for the original Function at both. That is decided without gradsmith.
Then mutant and original are checked at the poor inputs, in workers of their own. A mutant is named by an error, a stated
assumption or a warning that its gradient is wrong, which the original at the same inputs does not get.

Left out, and counted: a mutant that returns None for an input of which the poor example asks no gradient, and is right in all
others. A Function may leave such a gradient out on purpose. Deterministic: the same seed gives the same subjects.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import io
import json
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from apart import checked_apart, draw
from hidden_mutants import Poor, Search
from mutants import breed
from naming import Answer, Said, answer, outcome
from torch import Tensor

from gradsmith.checking.isolated import Job

GOAL = 0.85
KINDS = ("error", "assumption", "silent", "unverified")


@dataclass(frozen=True)
class Judged:
    """A poor mutant, what gradsmith said of it, and of its original at the same inputs."""

    poor: Poor
    mutant: Answer
    original: Answer

    @property
    def outcome(self) -> tuple[str, Said | None]:
        return outcome(self.mutant, self.original)

    @property
    def kind(self) -> str:
        return self.outcome[0]


def job_of(source: str, poor: Poor, folder: Path) -> Job | None:
    """The check as files in a folder; None if an argument is neither a tensor nor a plain value."""
    stream = io.BytesIO()
    try:
        torch.save([list(poor.args), {}], stream)
        torch.load(io.BytesIO(stream.getvalue()), weights_only=True)
    except Exception:  # pickle has many ways to say no
        return None
    tensors = folder / f"{_digest([_shown(a) for a in poor.args])}.pt"
    tensors.write_bytes(stream.getvalue())
    text = undeclared(source)
    path = folder / f"subject_{_digest(text)}.py"
    path.write_text(text, encoding="utf-8")
    return Job(str(path), None, [(poor.mutant.cls, None)], tensors=str(tensors))


def undeclared(source: str) -> str:
    """The source without gradsmith_inputs: the rich inputs that it declares would answer the question."""
    tree = ast.parse(source)
    declares = [n for n in tree.body if isinstance(n, ast.Assign) and "gradsmith_inputs" in ast.unparse(n.targets[0])]
    tree.body = [n for n in tree.body if n not in declares]
    return ast.unparse(tree)


def judged(subjects: list[Poor], level: str, workers: int) -> list[Judged]:
    """Mutants and originals checked at the poor inputs; an original at the same inputs only once."""
    with tempfile.TemporaryDirectory(prefix="gradsmith-impoverished-") as name:
        folder = Path(name)
        pairs = [(job_of(p.mutant.source, p, folder), job_of(p.mutant.original, p, folder), p) for p in subjects]
        jobs = {_key(job): job for mutant, original, _ in pairs for job in (mutant, original) if job is not None}
        reports = dict(zip(jobs, checked_apart(list(jobs.values()), level, workers)))
        said = {key: answer(found[0].to_dict()) for key, found in reports.items()}
    return [Judged(p, said[_key(m)], said[_key(o)]) for m, o, p in pairs if m is not None and o is not None]


def tables(found: list[Judged], search: Search) -> Iterator[str]:
    """The figures by mutation and by poverty, then every miss."""
    yield f"\n## {len(found)} subjects: mutants at inputs where gradcheck passes, in float64"
    yield (
        f"of {search.mutants} mutants gradcheck sees {search.mutants - search.invisible} at the declared inputs; "
        f"no poverty hides {search.never}; left out as None on purpose: {search.none_left_out} inputs"
    )
    for title, of in (("mutation", _operator), ("poverty", _poverty)):
        yield f"\n{title:42} {'n':>4} " + " ".join(f"{kind:>10}" for kind in KINDS) + f" {'named':>7}"
        groups = sorted({of(j) for j in found})
        for group in groups:
            yield _row(group, [j for j in found if of(j) == group])
    yield _row("all", found)
    missed = [j for j in found if j.kind not in ("error", "assumption")]
    if missed:
        yield f"\n### Misses ({len(missed)})"
    for j in missed:
        why = "; ".join(j.mutant.reasons) if j.kind == "unverified" else ""
        yield f"  {j.poor.name} ({j.kind}) {why}".rstrip()
    alarms = {(j.poor.mutant.name.split(":")[0], str(s)) for j in found for s in j.original.errors.values()}
    if alarms:
        yield f"\n### Errors on originals at poor inputs ({len(alarms)})"
        yield from (f"  {name}: {text}" for name, text in sorted(alarms))


def share(found: list[Judged]) -> float:
    return sum(j.kind in ("error", "assumption") for j in found) / max(1, len(found))


def _row(title: str, rows: list[Judged]) -> str:
    counts = Counter(j.kind for j in rows)
    return f"{title[:42]:42} {len(rows):>4} " + " ".join(f"{counts[k]:>10}" for k in KINDS) + f" {share(rows):>7.1%}"


def _operator(j: Judged) -> str:
    return j.poor.mutant.operator


def _poverty(j: Judged) -> str:
    return j.poor.poverty


def _key(job: Job) -> tuple[str | None, str | None]:
    return job.path, job.tensors


def _shown(value: Any) -> Any:
    return (value.tolist(), str(value.dtype), value.requires_grad) if isinstance(value, Tensor) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="stop after so many subjects, of mutants in random order")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--per-mutant", type=int, default=2, help="how many poor inputs of one mutant [2]")
    parser.add_argument("--limit", type=int, default=3, help="mutants of one mutation and Function [3]")
    parser.add_argument("--only", default="", help="part of a mutant's name")
    parser.add_argument("--level", default="standard")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every subject and what was said")
    parser.add_argument("--dry", action="store_true", help="only find the subjects, and list them")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    mutants = [m for m in breed(chosen.limit) if chosen.only in m.name]
    if chosen.sample is not None:
        random.Random(chosen.seed).shuffle(mutants)
    search, subjects = Search(), []
    for poor in search.subjects(mutants, chosen.per_mutant):
        subjects.append(poor)
        draw(search.mutants, len(mutants), f"{len(subjects)} subjects")
        if chosen.sample is not None and len(subjects) >= chosen.sample:
            break
    if chosen.dry:
        print("\n".join(poor.name for poor in subjects))
        print(f"{len(subjects)} subjects; {search}")
        return
    found = judged(subjects, chosen.level, chosen.jobs)
    print("\n".join(tables(found, search)))
    if chosen.json:
        chosen.json.write_text(json.dumps([_as_json(j) for j in found], indent=1, default=str), encoding="utf-8")
    print(f"\nnamed {share(found):.1%}, goal {GOAL:.0%}: {'reached' if share(found) >= GOAL else 'MISSED'}")
    raise SystemExit(share(found) < GOAL)


def _as_json(j: Judged) -> dict[str, Any]:
    kind, by = j.outcome
    return {
        "name": j.poor.name,
        "kind": kind,
        "by": asdict(by) if by else None,
        "inputs": [_shown(a) for a in j.poor.args],
        "source": j.poor.mutant.source,
        "mutant": asdict(j.mutant),
        "original": asdict(j.original),
    }


if __name__ == "__main__":
    main()
