"""Parameters moved away from 1 and 0, where a missing factor or term does not show."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gradsmith.lab.explore.variations.judging import Variation
from gradsmith.lab.lab import Lab


def variations(lab: Lab) -> Iterator[Variation]:
    arguments = lab.precise[1]
    for leaf in arguments.leaves:
        tensor = leaf.tensor.detach()
        if not leaf.differentiable or not tensor.is_floating_point() or not tensor.numel():
            continue
        for value in (0.0, 1.0):
            if not bool((tensor == value).all()):
                continue
            drawn = torch.rand(tensor.shape, generator=lab.generator(11), dtype=torch.float64).to(tensor)
            yield Variation(
                f"with '{leaf.name}' away from {value:g}",
                arguments.replaced({leaf.position: 0.5 + drawn}),
                "parameters",
                leaf.name,
            )
