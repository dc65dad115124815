"""The kinds of gradients that are not meant to be the derivative. What each is free of stands in the rules: `WAIVED_BY`.

lint and check ask here. Never imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gradsmith.findings import GradsmithError
from gradsmith.nearest import nearest

if TYPE_CHECKING:
    from gradsmith.source.suppressions import DeclaredInComment

SURROGATE = "surrogate"  # every kind; and what is declared without a kind, of which only the slope is free
KINDS: Mapping[str, str] = {  # as people write it -> the kind
    "straight-through": "straight-through",
    "reversal": "reversal",
    "reverse": "reversal",
    "scale": "scale",
    "quantise": "quantise",
    "routing": "routing",
    "clip": "clip",
    "sparsify": "sparsify",
    "custom": "custom",
    "noise": "noise",
    # A gradient of its own beside the one that comes in, or in its place: doubling grad_output does not double it.
    "aux-loss": "aux-loss",
    "stop": "stop",
}


def known(kind: str) -> str:
    """The kind that is meant, or an error that offers the nearest one.

    >>> known("reverse")
    'reversal'
    """
    if kind == SURROGATE:
        return kind
    if kind not in KINDS:
        raise GradsmithError(f"no surrogate is called {kind!r}; {nearest(kind, KINDS)}")
    return KINDS[kind]


def split_kind(pattern: str) -> tuple[str, str]:
    """`pkg.ops.Clip[clip]` -> the pattern of names and the kind; a pattern alone declares a surrogate without a kind.

    >>> split_kind("pkg.ops.Clip[clip]"), split_kind("pkg.ops.*")
    (('pkg.ops.Clip', 'clip'), ('pkg.ops.*', 'surrogate'))
    """
    names, bracket, kind = pattern.strip().removesuffix("]").partition("[")
    return names.strip(), kind.strip() if bracket else SURROGATE


def kind_in(patterns: Sequence[str], name: str) -> str | None:
    """The kind of surrogate that a project says `package.module.Class` is; None where it says nothing. The last one counts.

    >>> kind_in(["pkg.*", "pkg.Clip[clip]"], "pkg.Clip"), kind_in(["pkg.*"], "ops.Clip")
    ('clip', None)
    """
    import fnmatch

    kinds = [kind for names, kind in map(split_kind, patterns) if fnmatch.fnmatchcase(name, names)]
    return known(kinds[-1]) if kinds else None


def frees(kind: str, waived_by: Sequence[str]) -> bool:
    """Whether a rule that these kinds waive does not apply to a surrogate of this kind.

    >>> frees("clip", ("clip", "noise")), frees("scale", ("clip", "noise")), frees("scale", ("surrogate",))
    (True, False, True)
    """
    return SURROGATE in waived_by or known(kind) in waived_by


def waives(declaration: DeclaredInComment | None, waived_by: Sequence[str]) -> bool:
    """Whether a declaration in the source frees a gradient from such a rule; a kind that nobody knows frees the slope."""
    if declaration is None or declaration.gradient != "surrogate":
        return False
    return frees(declaration.kind if declaration.kind in KINDS else SURROGATE, waived_by)
