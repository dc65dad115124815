"""The bodies of reproduction scripts: plain PyTorch, each raises while its defect is there.

They share a prelude (`call`, `gradients`) and know `fn`, `inputs`, `keywords`, `seed`, `focus`, `element`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradsmith.lab.demonstrations import conditions, contract, numbers, ranks
from gradsmith.lab.demonstrations.prelude import PRELUDE

BODIES: Mapping[str, str] = {**numbers.BODIES, **contract.BODIES, **conditions.BODIES, **ranks.BODIES}

# Rules not listed here are shown by comparing the gradient with differences of forward.
BY_RULE: Mapping[str, str] = {
    "backward-raised": "run",
    "checkpoint-mismatch": "checkpoint",
    "class-state": "state",
    "compile-mismatch": "compile",
    "distributed-mismatch": "none",  # brings a script of its own, with a launcher
    "forward-raised": "run",
    "frozen-input": "subsets",
    "gradient-shape": "run",
    "hidden-parameter": "hidden",
    "hook-mismatch": "hooks",
    "inplace-grad": "grad_output",
    "inplace-input": "input",
    "inplace-saved": "saved",
    "intermediate-saved": "second",
    "jvp-mismatch": "jvp",
    "layout-dependent": "layout",
    "nonfinite-gradient": "finite",
    "nonlinear-backward": "linear",
    "not-repeatable": "repeat",
    "output-view-saved": "leak",
    "overflow": "overflow",
    "random-backward": "random",
    "reference-cycle": "cycle",
    "return-count": "run",
    "surrogate-slope": "slope",
    "tensor-on-ctx": "cycle",
    "thread-bound": "thread",
    "tie-gradient": "tie",
    "uninitialised-memory": "uninitialised",
    "unused-output": "unused",
    "vmap-mismatch": "vmap",
    "wrong-second-order": "second",
}

__all__ = ["BODIES", "BY_RULE", "PRELUDE"]
