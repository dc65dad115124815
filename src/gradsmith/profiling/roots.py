"""A finding that is the root of others takes them in: whoever mends it has mended the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradsmith import catalog
from gradsmith.findings import Finding


def absorbed(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those that another one takes in, which becomes their root; its rule says which."""
    out = list(findings)
    for root in findings:
        takes = catalog.find(root.rule).absorbs
        if takes is None or root not in out:
            continue
        mine = [f for f in out if f is not root and takes(root, f)]
        if mine:
            out[out.index(root)] = replace(root, symptoms=(*root.symptoms, *mine))
            out = [f for f in out if f not in mine]
    return out
