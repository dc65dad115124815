"""float64 creeps into a float32 computation

What it finds
-------------
Operations that compute in float64 although every floating input is narrower: a NumPy array, a Python list or a default dtype
brought float64 in, and type promotion carried it on.

Why it matters
--------------
Twice the bytes, and about twice the time. Measured on torch 2.13, one thread,
a window times 256 x 512, tanh, forward and backward: 1.74 ms in float64, 0.89 ms in float32.

Known problems
--------------
float64 accumulation of a long sum may be deliberate. A single number in float64 is not reported.

References
----------
https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
Measured on torch 2.13, see above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.profiling import Profile
    from gradsmith.profiling.lines import Site

CODE = "GS510"
SEVERITY = "info"
EXPLAINS = ("slower-than-autograd",)
FIXABLE = False
BAD = """
import torch

WINDOW = torch.linspace(0, 1, 512, dtype=torch.float64)


def windowed(x):
    return torch.tanh(x * WINDOW).float()


gradsmith_inputs = {"windowed": lambda: (torch.randn(256, 512, requires_grad=True),)}
"""
GOOD = """
import torch

WINDOW = torch.linspace(0, 1, 512)


def windowed(x):
    return torch.tanh(x * WINDOW)


gradsmith_inputs = {"windowed": lambda: (torch.randn(256, 512, requires_grad=True),)}
"""
_WIDE = frozenset({"float64", "complex128"})
# Measured on torch 2.13, 16,384 elements: float32 takes 0.34 (erf) to 0.63 (mul) of the time of float64.
_LEFT = 0.5


def profile(profile: Profile) -> Iterator[Finding]:
    if profile.bench is None:
        return
    given = [leaf.tensor for leaf in profile.bench.arguments.leaves] + profile.bench.parameters
    kinds = {str(t.dtype).removeprefix("torch.") for t in given if t.is_floating_point() or t.is_complex()}
    if not kinds or kinds & _WIDE:
        return
    events = profile.recording.events
    wide = [e for e in events if not e.is_view and any(a.dtype in _WIDE and a.numel > 1 for a in e.outputs)]
    if not wide:
        return
    first = next((e for e in wide if e.own_frames), wide[0])
    back = [e for e in events if e.op == "_to_copy" and any(a.dtype in _WIDE for a in e.reads)]
    share = profile.share([*wide, *back])
    casts = [e for e in [*wide, *back] if e.op == "_to_copy"]
    narrowed = [e for e in wide if e not in casts]
    gone = profile.seconds(casts) + (1 - _LEFT) * profile.seconds(narrowed)
    named = _constant(profile, first.site) if first.site is not None else None
    if named is None:
        what = "A float64 tensor"
        advice = (
            "Find the constant in this line that is float64 (NumPy arrays are, by default), and make it float32 where it is created, "
            "for example with `.float()`."
        )
    else:
        name, line = named
        what = f"The float64 tensor '{name}'" + (f" (line {line})" if line else "")
        advice = f"Make '{name}' float32 where it is created: write `dtype=torch.float32` there, or add `.float()`."
    yield profile.finding(
        first.site,
        f"{what} enters the computation at {profile.place(first.site)}, and every input is {' or '.join(sorted(kinds))}. From there on "
        f"{len(wide)} operations of forward and backward compute in float64 ({share:.0%} of the run time).",
        advice=advice,
        share=share,
        gain=profile.gain(gone),
        evidence={"ops": len(wide)},
    )


def _constant(profile: Profile, site: Site) -> tuple[str, int | None] | None:
    """The one float64 tensor that this line reads by name, and where the file assigns it."""
    import re
    from types import FunctionType

    from torch import Tensor

    from gradsmith.lab.subject.reached import reached
    from gradsmith.source.loaded import file_named

    assert profile.bench is not None
    target = profile.bench.target
    words = set(re.findall(r"\w+", site.text))
    found: dict[str, object] = {}
    for value in reached(target.function or target.original):
        if isinstance(value, FunctionType) and value.__code__.co_filename == site.path:
            found.update({word: value.__globals__[word] for word in words & value.__globals__.keys()})
    if target.module is not None:
        found.update({f"self.{name}": b for name, b in target.module.named_buffers() if f"self.{name}" in site.text})
    wide = [n for n, t in found.items() if isinstance(t, Tensor) and str(t.dtype).removeprefix("torch.") in _WIDE]
    if len(wide) != 1:
        return None
    file = file_named(site.path)
    made = file.block(wide[0]) if file is not None else None
    return wide[0], made.lineno if made is not None else None
