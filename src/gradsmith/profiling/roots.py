"""A loop that need not be one is the root of what goes wrong inside it: whoever vectorises it has mended the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradsmith.findings import Finding

_INSIDE = frozenset(
    {"time-index", "slot-write", "cat-in-loop", "host-sync", "superlinear-backward", "loop-invariant", "needless-copy"}
)


def under_loops(findings: Sequence[Finding]) -> list[Finding]:
    """Findings on lines of an element loop become its symptoms, where the loop promises the larger gain."""
    out = list(findings)
    for loop in [f for f in findings if f.rule == "element-loop" and f.severity == "warning"]:
        mine = [f for f in out if f.rule in _INSIDE and _inside(f, loop) and _gain(f) <= _gain(loop)]
        if mine:
            at = out.index(loop)
            out[at] = replace(loop, symptoms=(*loop.symptoms, *mine))
            out = [f for f in out if f not in mine]
    return out


def under_layers(findings: Sequence[Finding]) -> list[Finding]:
    """Where a built-in layer does the whole loop, what its cell does per step is no advice of its own."""
    layer = next((f for f in findings if f.rule == "builtin-cell"), None)
    if layer is None:
        return list(findings)
    mine = [f for f in findings if f.rule == "unhoisted-projection" and "cell" in f.evidence]
    whole = replace(layer, symptoms=(*layer.symptoms, *mine))
    return [whole if f is layer else f for f in findings if f not in mine]


def _inside(finding: Finding, loop: Finding) -> bool:
    if finding.path != loop.path or finding.line is None or loop.line is None:
        return False
    return loop.line <= finding.line <= int(loop.evidence.get("last_line", loop.line))


def _gain(finding: Finding) -> float:
    return float(finding.evidence.get("predicted_gain", 1.0))
