"""Reports for the tests of the HTML page: a real one, and one whose every text tries to break out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import gradsmith as gs
from gradsmith.findings import Edit, Finding, Report, Reproduction, Skipped, Subject, jsonable

HOSTILE = "</script></style></pre><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\"'&{{ 7 * 7 }}$x^2$"


class Product(torch.autograd.Function):
    """x * y, whose gradient of y is wrong in one column."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        grad_y = grad_output * x
        grad_y[:, 1] = 0
        return grad_output * y, grad_y


def real() -> Report:
    """Of a Function that is wrong in one column and was profiled, too, and one that is right."""
    x, y = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    wrong = gs.check(Product, x, y, level="quick", coverage=True)
    wrong = gs.profile(Product, x, y, budget=0.2).report(beside=wrong)
    right = gs.check(torch.sin, x, level="quick")
    return Report(wrong.findings + right.findings, wrong.subjects + right.subjects)


def hostile(folder: Path) -> Report:
    """Names, messages, source, inputs: all from the user, none of it to be believed."""
    file = folder / "ops.py"
    file.write_text(f"x = 1  # {HOSTILE}\n")
    finding = Finding(
        HOSTILE,
        rule="inplace-grad",
        code="GS202",
        severity="error",
        function=HOSTILE,
        argument=HOSTILE,
        path=str(file),
        line=1,
        column=0,
        snippet=f"x = 1  # {HOSTILE}",
        cause=HOSTILE,
        advice=HOSTILE,
        edits=(Edit(1, 0, 1, 5, HOSTILE),),
        symptoms=(Finding(HOSTILE, rule="x", code="GS1", severity="info"),),
        evidence={"thread": HOSTILE, "access": {"shape": [4, 3], "elements": 12, "touched": [[9, 14]]}},
        reproduce=Reproduction(0, HOSTILE, HOSTILE),
    )
    subject = Subject(
        HOSTILE,
        "unverified",
        HOSTILE,
        path=str(file),
        line=1,
        inputs_code=HOSTILE,
        conditions={HOSTILE: f"fails: {HOSTILE}"},
        assumptions=(HOSTILE,),
        explored={"examples": 1, "steps": {HOSTILE: [HOSTILE]}},
        coverage={
            "lines": 1,
            "lines reached": 1,
            "sides": 2,
            "sides reached": 1,
            "not reached": [HOSTILE],
            "points": [
                {"line": 1, "sort": "line", "what": "", "side": "ran", "phase": "", "state": "judged"},
                {"line": 1, "sort": "test", "what": HOSTILE, "side": HOSTILE, "phase": "", "state": "never"},
                {"line": 1, "sort": "operation", "what": HOSTILE, "side": HOSTILE, "phase": "forward", "state": "ran"},
            ],
        },
        measured={"profile": _hostile_profile()},
    )
    warning = Finding("plain", rule="tensor-on-ctx", code="GS401", severity="warning", function="Other", path=str(file))
    return Report([finding, warning], [subject], [Skipped(HOSTILE, HOSTILE)], notes=[HOSTILE])


def _hostile_profile() -> dict[str, Any]:
    """A profile with hostile texts wherever user code has a say."""
    x = torch.randn(4, 3, requires_grad=True)
    profile: dict[str, Any] = jsonable(gs.profile(Product, x, x.detach(), budget=0.1).to_dict())
    profile["by_line"] = [{**use, "text": HOSTILE} for use in profile["by_line"]]
    profile["memory"]["saved"] = [{**one, "attribute": HOSTILE} for one in profile["memory"]["saved"]]
    profile["growth"] = [{**one, "dimension": HOSTILE} for one in profile["growth"]]
    profile["subject"] |= {"name": HOSTILE, "inputs": HOSTILE}
    return {**profile, "notes": [HOSTILE], "findings": []}
