"""Other indices: repeated ones and another order. Offsets, lengths and permutations are left as they are."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradsmith.lab.explore.questions import compared
from gradsmith.lab.explore.variations.judging import Variation
from gradsmith.lab.lab import Lab
from gradsmith.source.lexicon import is_a


def variations(lab: Lab) -> Iterator[Variation]:
    arguments = lab.precise[1]
    for leaf in arguments.leaves:
        # Boundaries of segments: another order is not another example, it is nonsense.
        if not _is_index(leaf.tensor) or is_a(leaf.name, "index with a meaning"):
            continue
        tensor = leaf.tensor.detach()
        sizes = {size for other in arguments.leaves if other is not leaf for size in other.tensor.shape}
        free = leaf.position in compared(lab.tape, arguments.leaves).accumulated or not _is_permutation(tensor, sizes)
        if free and tensor.unique().numel() == tensor.numel():
            repeated = tensor.clone(memory_format=torch.contiguous_format)
            repeated.view(-1)[1] = repeated.view(-1)[0]
            yield Variation(
                f"with a repeated index in '{leaf.name}'",
                arguments.replaced({leaf.position: repeated}),
                "indices",
                leaf.name,
            )
        yield Variation(
            f"with '{leaf.name}' in reverse order",
            arguments.replaced({leaf.position: tensor.flip(-1).contiguous()}),
            "indices",
            leaf.name,
        )


def _is_index(tensor: Tensor) -> bool:
    return tensor.dtype in (torch.int64, torch.int32) and tensor.ndim > 0 and tensor.numel() > 1


def _is_permutation(tensor: Tensor, sizes: set[int]) -> bool:
    """Every number once, and as many as some dimension has: 0, 1, 2 out of six rows is a choice."""
    if tensor.shape[-1] not in sizes:
        return False
    flat = tensor.flatten().sort().values
    return bool((flat == torch.arange(flat.numel(), device=flat.device)).all())
