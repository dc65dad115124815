"""Kernels that are right under an assumption about what stands around them: nobody else reads what they overwrite, and what
they read is contiguous.

A torch operation that overwrites a tensor of somebody else is an error, because the version counter, `mark_dirty` and the
documentation forbid it. Of a kernel that was given the pointer nobody can say whether it is meant: whoever wrote it is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from gradsmith.checking.accepting import comment, is_accepted
from gradsmith.checking.verdict import under_assumption
from gradsmith.findings import Finding
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.target import where_comments_go
from gradsmith.lab.triton.events import KernelLog, Store


def storing_kernel(seen: KernelLog, tensor: Tensor) -> Store | None:
    """The last line of a kernel that stored into this tensor's memory, if one did."""
    known = seen.filled.get(tensor.untyped_storage().data_ptr())
    return known.stores[-1] if known is not None and known.stores else None


def if_contiguous(lab: Lab, finding: Finding) -> Finding:
    """A finding about the layout of an input, as an assumption."""
    return _assumed(lab, finding, f"'{finding.argument}' is contiguous", {})


def if_nobody_reads(lab: Lab, finding: Finding, store: Store, sentence: str, *, proves_nothing: bool) -> Finding:
    """A finding about overwritten memory, as an assumption; with `proves_nothing`, the subject is not verified before somebody
    accepts it."""
    told = replace(
        finding,
        message=f"{finding.message} The kernel {store.kernel} stores into it (line {store.line}): the gradient is right only "
        f"if {sentence}.",
        advice="Give the kernel memory of its own to store into, as with torch.empty_like.",
    )
    evidence: dict[str, Any] = {"kernel": store.kernel, "kernel line": store.line}
    if proves_nothing and not is_accepted(sentence, lab.accepted):
        evidence["unproven"] = (
            f"its gradient is right here, and only if {sentence}; accept that with {_accepting(lab, sentence)}"
        )
    return _assumed(lab, told, sentence, evidence)


def _assumed(lab: Lab, finding: Finding, sentence: str, evidence: dict[str, Any]) -> Finding:
    return replace(
        under_assumption(finding, accepted=is_accepted(sentence, lab.accepted)),
        advice=f"{finding.advice} If it always holds that {sentence}, accept it with {_accepting(lab, sentence)}.",
        evidence={**finding.evidence, **evidence, "assumption": sentence, "accept": comment(sentence)},
    )


def _accepting(lab: Lab, sentence: str) -> str:
    return f"`{comment(sentence)}` {where_comments_go(lab.target)}"
