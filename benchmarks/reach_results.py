"""What reach.py has measured, and how it is printed: figures, then every miss and every false alarm, for reading."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from naming import Answer, Said, outcome

SLOW = 30.0
KINDS = ("error", "assumption", "silent", "unverified")


@dataclass(frozen=True)
class Checked:
    """One file, and what came of it."""

    path: str
    answer: Answer
    status: int | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "status": self.status, "seconds": round(self.seconds, 2), **asdict(self.answer)}


@dataclass(frozen=True)
class Pair:
    """A bug and its fix; `about` is the author's entry in the manifest."""

    name: str
    about: Mapping[str, Any]
    broken: Checked
    mended: Checked

    @property
    def kind(self) -> str:
        return outcome(self.broken.answer, self.mended.answer)[0]

    @property
    def by(self) -> Said | None:
        return outcome(self.broken.answer, self.mended.answer)[1]


@dataclass
class Measured:
    """The whole set, as far as it was asked for."""

    pairs: list[Pair] = field(default_factory=list)
    right: list[Checked] = field(default_factory=list)

    @property
    def sound(self) -> list[Checked]:
        """Files that are right: nothing may be an error on them."""
        return [pair.mended for pair in self.pairs] + self.right

    @property
    def share(self) -> float:
        return sum(pair.kind in ("error", "assumption") for pair in self.pairs) / max(1, len(self.pairs))

    @property
    def wrongly_refuted(self) -> list[Checked]:
        return [c for c in self.sound if c.answer.errors or c.answer.verdict == "refuted"]


def tables(measured: Measured) -> Iterator[str]:
    """The figures, then every miss and every false alarm in full, for reading."""
    pairs = measured.pairs
    if pairs:
        yield f"\n## {len(pairs)} pairs of a broken and a mended Function"
        yield f"{'':28} {'n':>4} " + " ".join(f"{kind:>10}" for kind in KINDS) + f" {'named':>7}"
        for title, rows in _groups(pairs):
            counts = Counter(pair.kind for pair in rows)
            named = (counts["error"] + counts["assumption"]) / len(rows)
            yield f"{title[:28]:28} {len(rows):>4} " + " ".join(f"{counts[k]:>10}" for k in KINDS) + f" {named:>7.1%}"
    sound = measured.sound
    stating = [c for c in sound if c.answer.assumptions]
    checked = [pair.broken for pair in pairs] + sound
    slow = [c for c in checked if c.seconds > SLOW]
    troubled = [c for c in checked if c.answer.trouble]
    yield f"\nerrors on mended: {_refuted([p.mended for p in pairs])} of {len(pairs)}"
    yield f"errors on right: {_refuted(measured.right)} of {len(measured.right)}"
    yield f"assumptions on mended or right: {len(stating)} of {len(sound)} ({len(stating) / max(1, len(sound)):.1%})"
    verdicts = Counter(c.answer.verdict for c in sound)
    yield f"verdicts on mended and right: {', '.join(f'{n} {word}' for word, n in verdicts.most_common())}"
    yield f"over {SLOW:g} s: {len(slow)}; crashes, limits, no report: {len(troubled)}"
    yield f"slowest {max((c.seconds for c in checked), default=0):.0f} s, all {sum(c.seconds for c in checked):.0f} s"
    yield from _listed(measured, slow, troubled)


def _listed(measured: Measured, slow: list[Checked], troubled: list[Checked]) -> Iterator[str]:
    missed = [pair for pair in measured.pairs if pair.kind not in ("error", "assumption")]
    yield from _part("Misses", [_miss(pair) for pair in missed])
    yield from _part(
        "Named",
        [f"{p.name} ({p.kind}): {p.by or 'refuted without a finding'}" for p in measured.pairs if p not in missed],
    )
    alarms = [f"{c.path}: {s}" for c in measured.wrongly_refuted for s in c.answer.errors.values()]
    yield from _part("Errors on right code", alarms)
    stated = [f"{c.path}: {s}" for c in measured.sound for s in c.answer.assumptions.values()]
    yield from _part("Assumptions on right code, to be judged", stated)
    left = [f"{c.path}: {'; '.join(c.answer.reasons)}" for c in measured.sound if c.answer.verdict != "verified"]
    yield from _part("Right code that is not verified", left)
    yield from _part("Slow", [f"{c.path}: {c.seconds:.0f} s" for c in slow])
    yield from _part("Crashes, limits, no report", [f"{c.path}: {'; '.join(c.answer.trouble)}" for c in troubled])


def _part(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n### {title} ({len(lines)})"
        yield from (f"  {line}" for line in lines)


def _miss(pair: Pair) -> str:
    about = pair.about
    seen = "hidden" if about.get("hidden", True) else "visible"
    also = [*pair.broken.answer.errors.values(), *pair.broken.answer.assumptions.values()]
    why = "; ".join(pair.broken.answer.reasons) if pair.kind == "unverified" else ""
    shared = f"; the mended one gets it, too: {also[0]}" if also else ""
    return f"{pair.name} ({pair.kind}, {seen}, {about.get('harm', '?')}): {about.get('mechanism', '?')}{shared} {why}".rstrip()


def _refuted(checked: Sequence[Checked]) -> int:
    return sum(bool(c.answer.errors) or c.answer.verdict == "refuted" for c in checked)


def _groups(pairs: list[Pair]) -> Iterator[tuple[str, list[Pair]]]:
    yield "all", pairs
    for title, hidden in (("hidden by the inputs", True), ("visible", False)):
        if rows := [p for p in pairs if bool(p.about.get("hidden", True)) == hidden]:
            yield title, rows
    # A harm may be told in a sentence: its first word or clause is the kind.
    kinds = sorted({_harm(p) for p in pairs})
    for kind in kinds:
        yield f"harm: {kind}", [p for p in pairs if _harm(p) == kind]


def _harm(pair: Pair) -> str:
    return re.split(r"[:;,.(]", str(pair.about.get("harm", "?")))[0].strip()[:22]
