"""The foreign function behind a guard: what goes in is a copy, what comes out is checked, in words."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from gradsmith.external.calls import CallSignature
from gradsmith.external.errors import ExternalError
from gradsmith.findings import one_line

AnyArray = NDArray[Any]


@dataclass(frozen=True)
class Failure:
    """An evaluation that raised: the function may not be defined there."""

    text: str


@dataclass(frozen=True)
class Answer:
    """What a function returned, wherever it ran, and whether it printed."""

    value: Any
    printed: str = ""


@dataclass
class Outputs:
    """What a function returns for inputs of given shapes."""

    spec: pytree.TreeSpec
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]


def answer(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer | Failure:
    """One evaluation, here or in another process. What the function prints is held back: it is called many times."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            value = fn(*args, **kwargs)
    except Exception as error:
        return Failure(one_line(error))
    return Answer(value, said.getvalue())


@dataclass
class Foreign:
    """The user's function, its name, and what is known of its outputs."""

    fn: Callable[..., Any]
    name: str
    known: dict[Any, Outputs] = field(default_factory=dict)
    looked_at: set[int] = field(default_factory=set)
    told: set[str] = field(default_factory=set)

    def called(self, call: CallSignature, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        """The outputs of the forward call itself: here, with the user's own exceptions and prints."""
        args, kwargs = call.arguments(copies(arrays))
        value = self.fn(*args, **kwargs)
        if call.number not in self.looked_at:
            self.looked_at.add(call.number)
            self._look_for_writes(call, arrays, args, kwargs)
        return self.read(call, arrays, value)

    def read(self, call: CallSignature, arrays: Sequence[AnyArray], value: Any) -> list[AnyArray]:
        """What was returned as arrays, of the shapes that are known for such inputs."""
        flat, spec = pytree.tree_flatten(value)
        if not flat:
            raise self._wrong_type(value)
        found = [self._array(leaf, value) for leaf in flat]
        key = (call.number, tuple(a.shape for a in arrays))
        shapes = tuple(a.shape for a in found)
        known = self.known.get(key)
        if known is None:
            self.known[key] = Outputs(spec, shapes, tuple(a.dtype for a in found))
        elif known.shapes != shapes or known.spec != spec:
            raise ExternalError(
                f"{self.name} returned outputs of shape {_shown(shapes)}, and {_shown(known.shapes)} before, for inputs of the "
                "same shapes. A gradient needs outputs that keep their shape: pad them, or return a fixed number of values."
            )
        return found

    def printed(self, text: str) -> None:
        """A word, once, on prints that are held back."""
        if text:
            self._tell(
                "prints",
                f"{self.name} prints while it is evaluated. A gradient needs many evaluations, so only the prints of the forward "
                "call are shown.",
            )

    def _array(self, leaf: Any, whole: Any) -> AnyArray:
        if hasattr(leaf, "detach"):
            leaf = leaf.detach().cpu().numpy()
        if leaf is None or isinstance(leaf, (str, bytes)):
            raise self._wrong_type(leaf if leaf is not whole else whole)
        try:
            found = np.array(leaf)
        except Exception:
            raise self._wrong_type(leaf) from None
        if found.dtype.kind not in "fciub":
            raise self._wrong_type(leaf)
        return found

    def _wrong_type(self, value: Any) -> ExternalError:
        shown = " ".join(repr(value).split())[:60]
        return ExternalError(
            f"{self.name} returned {shown} of type {type(value).__name__}. Return NumPy arrays or numbers; "
            "tuples, lists and dicts of them are fine."
        )

    def _look_for_writes(self, call: CallSignature, arrays: Sequence[AnyArray], args: Any, kwargs: Any) -> None:
        """A function that writes into its arguments wrote into copies: the user's tensors are as before, and that is said."""
        given = [
            leaf
            for leaf, c in zip(pytree.tree_flatten((args, kwargs))[0], call.constants)
            if isinstance(leaf, np.ndarray)
        ]
        for name, before, after in zip(call.names, arrays, given):
            if before.shape != after.shape or not np.array_equal(before, after, equal_nan=before.dtype.kind in "fc"):
                self._tell(
                    "writes",
                    f"{self.name} writes into its argument '{name}'. It was given a copy, so your tensor keeps its values; return "
                    "what you need as an output.",
                )
                return

    def _tell(self, what: str, sentence: str) -> None:
        if what not in self.told:
            self.told.add(what)
            warnings.warn(sentence, UserWarning, stacklevel=4)


def copies(arrays: Sequence[AnyArray]) -> list[AnyArray]:
    return [a.copy() for a in arrays]


def _shown(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(s) for s in shapes)


def undefined_outputs(name: str, outputs: Sequence[AnyArray], v: Sequence[AnyArray | None]) -> str:
    """A sentence on the first output that is NaN or infinite where a gradient is asked for it; '' if there is none."""
    for k, (out, weight) in enumerate(zip(outputs, v)):
        if weight is None or out.dtype.kind not in "fc":
            continue
        bad = ~np.isfinite(out) & (weight != 0)
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            place = f"output {k}" + (f" at {list(index)}" if index else "")
            return (
                f"{name} returned {_number(out[index])} ({place}) at these inputs, so there is no derivative. Return finite values, "
                "or keep that output out of the loss."
            )
    return ""


def _number(value: Any) -> str:
    real = float(np.real(value))
    return "NaN" if math.isnan(real) else "an infinite value"
