"""A gradient from the user: `vjp`, `jacobian` or `jvp`, with what it returns held to the shapes of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils import _pytree as pytree

from gradsmith.external.calls import SLOT, CallSignature
from gradsmith.external.errors import ExternalError
from gradsmith.external.foreign import AnyArray, Outputs, copies


@dataclass(frozen=True)
class Given:
    """Which kind of derivative was given, and the function that computes it."""

    kind: str
    fn: Callable[..., Any]
    name: str

    def gradients(
        self,
        call: CallSignature,
        arrays: Sequence[AnyArray],
        outputs: Outputs,
        v: Sequence[AnyArray],
        wanted: Sequence[int],
    ) -> list[AnyArray]:
        """The gradient of <v, outputs> with respect to each wanted input."""
        return {"vjp": self._vjp, "jacobian": self._jacobian, "jvp": self._jvp}[self.kind](
            call, arrays, outputs, v, wanted
        )

    def _vjp(
        self,
        call: CallSignature,
        arrays: Sequence[AnyArray],
        outputs: Outputs,
        v: Sequence[AnyArray],
        wanted: Sequence[int],
    ) -> list[AnyArray]:
        args, kwargs = call.arguments(copies(arrays))
        returned = self.fn(pytree.tree_unflatten(copies(v), outputs.spec), *args, **kwargs)
        found = self._per_input(returned, call)
        return [self._shaped(found[k], arrays[k].shape, call.names[k], "the shape of the input") for k in wanted]

    def _jacobian(
        self,
        call: CallSignature,
        arrays: Sequence[AnyArray],
        outputs: Outputs,
        v: Sequence[AnyArray],
        wanted: Sequence[int],
    ) -> list[AnyArray]:
        args, kwargs = call.arguments(copies(arrays))
        returned = self.fn(*args, **kwargs)
        per_output = [returned] if len(v) == 1 else list(returned)
        if len(per_output) != len(v):
            raise ExternalError(
                f"jacobian of {self.name} returned {len(per_output)} items for {len(v)} outputs: return one per output."
            )
        found: list[AnyArray] = [np.zeros(arrays[k].shape) for k in wanted]
        for weight, shape, jacobians in zip(v, outputs.shapes, per_output):
            of_inputs = self._per_input(jacobians, call)
            for place, k in enumerate(wanted):
                expected = (*shape, *arrays[k].shape)
                jacobian = self._shaped(
                    of_inputs[k], expected, call.names[k], "the shape of the output, then that of the input"
                )
                found[place] = found[place] + np.tensordot(np.conj(weight), jacobian, axes=len(shape)).real
        return found

    def _jvp(
        self,
        call: CallSignature,
        arrays: Sequence[AnyArray],
        outputs: Outputs,
        v: Sequence[AnyArray],
        wanted: Sequence[int],
    ) -> list[AnyArray]:
        """One call for every element: a jvp gives a column at a time."""
        found = []
        for k in wanted:
            gradient = np.zeros(arrays[k].size)
            for element in range(arrays[k].size):
                tangents = [np.zeros(a.shape) for a in arrays]
                tangents[k].reshape(-1)[element] = 1.0
                args, kwargs = call.arguments(copies(arrays))
                given = tangents[0] if len(tangents) == 1 else tuple(tangents)
                moved = pytree.tree_flatten(self.fn(given, *args, **kwargs))[0]
                if len(moved) != len(v):
                    raise ExternalError(
                        f"jvp of {self.name} returned {len(moved)} arrays for {len(v)} outputs: return one per output."
                    )
                for weight, shape, m in zip(v, outputs.shapes, moved):
                    column = self._shaped(m, shape, call.names[k], "the shape of the output")
                    gradient[element] += float(np.sum(np.conj(weight) * column).real)
            found.append(gradient.reshape(arrays[k].shape))
        return found

    def _per_input(self, returned: Any, call: CallSignature) -> list[Any]:
        number = sum(value is SLOT for value in call.constants)
        items = list(returned) if number != 1 and isinstance(returned, (tuple, list)) else [returned]
        if number == 1 and isinstance(returned, (tuple, list)) and len(returned) == 1:
            items = list(returned)
        if len(items) != number:
            raise ExternalError(
                f"{self.kind} of {self.name} returned {len(items)} gradients for {number} tensors ({', '.join(call.names)}). Return a tuple with "
                "one per tensor, None where there is none."
            )
        return items

    def _shaped(self, value: Any, shape: tuple[int, ...], name: str, meaning: str) -> AnyArray:
        found = np.zeros(shape) if value is None else np.asarray(value)
        if found.shape != shape:
            turned = " It looks transposed." if found.shape == shape[::-1] and len(set(shape)) > 1 else ""
            raise ExternalError(
                f"{self.kind} of {self.name} returned shape {found.shape} for '{name}', expected {shape}: {meaning}.{turned}"
            )
        return found
