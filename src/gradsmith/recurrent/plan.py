"""What was decided for one step, and the page that `.plan()` shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from .engine import Engine
from .nodes import dtype_of
from .rows import elements
from .split import Split

_RUNGS = {
    "c": "compiled C loops",
    "torch": "torch operations with hoisted and deferred matrix products",
    "loop": "the step itself, unbound over time, under autograd",
}


@dataclass(repr=False)
class Plan:
    """How a step will run. `print(plan)` explains it, and so does a plan at the end of a notebook's cell."""

    backend: str
    reasons: list[str] = field(default_factory=list)
    """Why each faster backend was not taken, in the order they were tried."""
    parts: Split | None = None
    engine: Engine | None = None
    number: int = -1
    rowwise: tuple[bool, ...] = ()
    seen_used: tuple[int, ...] = ()
    placed: bool = False
    """The step hands tensors it reaches by closure to a Function (see standing_in.py)."""
    dtype: torch.dtype = torch.float32
    y_dtypes: tuple[torch.dtype, ...] = ()
    state_dtypes: tuple[torch.dtype, ...] = ()
    names: dict[str, list[str]] = field(default_factory=dict)
    checked: set[int] = field(default_factory=set)
    """Batch sizes at which the plan agreed with the loop."""
    truth: torch.dtype = torch.float64
    """The dtype that the loop ran in: that of the plan where the step names its own dtype."""
    uneven: dict[int, bool] = field(default_factory=dict)
    """Batch sizes at which it was compared for sequences of different lengths, and whether it agreed."""
    notes: list[str] = field(default_factory=list)
    loop: Any = None
    """The same step as a loop under autograd, for a plan that nobody calls by its step."""
    held: list[object] = field(default_factory=list)
    seconds: float = 0.0
    from_disk: bool = False
    """Captured and checked by an earlier process."""

    def __str__(self) -> str:
        lines = [f"backend: {self.backend} ({_RUNGS[self.backend]})"]
        lines += [f"  not {reason}" for reason in self.reasons]
        if self.parts is not None:
            lines += [f"{stage + ':':<11} {what}" for stage, what in _stages(self.parts)]
        lines += self.notes
        if self.checked:
            lines.append(f"checked: {self._held_against()}")
        if self.seconds:
            lines.append(f"planned in {self._took()}")
        return "\n".join(lines)

    def _held_against(self) -> str:
        sizes = ", ".join(map(str, sorted(self.checked)))
        also = ", ".join(str(batch) for batch, agreed in sorted(self.uneven.items()) if agreed)
        also = f"; for different lengths at batch {also}" if also else ""
        kind = str(self.truth).removeprefix("torch.")
        return f"y, state and every gradient against a {kind} loop at batch {sizes}, T = 2 and 5{also}"

    def _took(self) -> str:
        return f"{self.seconds:.2f} s{' (found on disk)' if self.from_disk else ''}"

    def __repr__(self) -> str:
        return f"<Plan: {self.backend} ({_RUNGS[self.backend]})>"

    def _repr_html_(self) -> str:
        from gradsmith.report.in_notebook import plan_html

        rows = [("backend", f"{self.backend}: {_RUNGS[self.backend]}")]
        rows += [("not", reason) for reason in self.reasons]
        rows += _stages(self.parts) if self.parts is not None else []
        rows += [("note", note) for note in self.notes]
        rows += [("checked", self._held_against())] if self.checked else []
        rows += [("planned in", self._took())] if self.seconds else []
        return plan_html(rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython's prompt shows."""
        printer.text(str(self))


def _stages(parts: Split) -> list[tuple[str, str]]:
    joint = parts.joint
    kept = [f"{_bytes_per_step(n, joint.rows)} {n.name}" for n in parts.saved]
    states = [f"{_bytes_per_step(n, joint.rows)} {n.name} (state)" for n in joint.state if n in parts.kept_states]
    late = (
        f"; y is not kept: {', '.join(n.name for n in parts.late)} (state) follows from the rest" if parts.late else ""
    )
    return [
        ("once", _summary(parts.once)),
        ("hoisted", _summary(parts.hoisted)),
        ("looped", f"forward {_summary(parts.forward)}; backward {_summary(parts.backward)}"),
        ("saved", f"{', '.join(states + kept) or 'nothing'} (bytes per row and step)"),
        ("recomputed", f"{_summary(parts.recomputed)}{late}"),
        ("deferred", f"{_summary(parts.after)}; summed in the loop: {_summary(parts.sums)}"),
    ]


def _bytes_per_step(node: fx.Node, rows: int) -> int:
    return elements(node, rows) * dtype_of(node).itemsize


def _summary(nodes: list[fx.Node]) -> str:
    counts = Counter(str(node.target).split(".")[1] if "." in str(node.target) else str(node.target) for node in nodes)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "nothing"
