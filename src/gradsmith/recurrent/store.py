"""Plans that outlive the process: found again by the content of all that the step can see.

A plan on disk was captured, compiled and checked against a float64 loop by an earlier process with the same torch,
compiler, processor and step, so the next process needs none of that (5 milliseconds instead of seconds). At a batch
size that no process has checked yet, the check runs again.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from gradsmith.native import cache
from gradsmith.native.compile import toolchain
from gradsmith.native.refused import Refused

from .ladder import Call
from .plan import Plan
from .portable import Unportable, digest, own_source
from .run import register
from .written import Unwritable, from_json, to_json


def address(call: Call, backend: str) -> str | None:
    """The name of a call's plan on disk; None if its step could behave otherwise in another process."""
    if backend not in ("auto", "c"):
        return None
    numpy = sys.modules.get("numpy")
    machine = (
        own_source(), sys.version, str(torch.version.git_version), getattr(numpy, "__version__", ""),
        torch.are_deterministic_algorithms_enabled(), str(torch.get_default_device()),
        torch.get_float32_matmul_precision(), call.x.names, call.state.names, call.params.names, tuple(call.around.names),
    )  # fmt: skip
    try:
        return digest((machine, toolchain(), call.key(backend)), call.around.held) + ".plan"
    except (Unportable, Refused):
        return None


def find(call: Call, name: str) -> Plan | None:
    """The plan that an earlier process left, or None."""
    data = cache.read(name)
    if data is None:
        return None
    try:
        found: dict[str, Any] = json.loads(data)
        plan = from_json(found, call.state.spec)
    except (Refused, ValueError, KeyError, TypeError, AttributeError, IndexError):  # also what only looks like a plan
        return None
    assert plan.engine is not None
    plan.number = register(plan.engine)
    plan.held = list(call.around.held)
    plan.from_disk = True
    return plan


def keep(plan: Plan, name: str) -> None:
    """Leave a plan that has passed its check to later processes."""
    try:
        cache.write(name, json.dumps(to_json(plan)).encode())
    except Unwritable:
        return
