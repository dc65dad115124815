"""A script in plain PyTorch that shows a finding again, without gradsmith."""

from __future__ import annotations

from gradsmith.findings import Finding, Reproduction
from gradsmith.inputs.code import as_code
from gradsmith.lab.lab import Lab


def reproduction(finding: Finding, lab: Lab) -> Reproduction:
    """Seed and inputs of the check; probes that can show more attach their own snippet."""
    return Reproduction(seed=lab.settings.seed, inputs=as_code(lab.arguments))
