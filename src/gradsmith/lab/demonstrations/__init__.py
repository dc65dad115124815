"""The bodies of reproduction scripts: plain PyTorch, each raises while its defect is there.

They share a prelude (`call`, `gradients`) and know `fn`, `inputs`, `keywords`, `seed`, `focus`, `element`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradsmith.lab.demonstrations import conditions, contract, numbers, ranks
from gradsmith.lab.demonstrations.prelude import PRELUDE

BODIES: Mapping[str, str] = {**numbers.BODIES, **contract.BODIES, **conditions.BODIES, **ranks.BODIES}

__all__ = ["BODIES", "PRELUDE"]
