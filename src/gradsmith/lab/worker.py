"""What a worker does with one subject: find it in the user's module, find its inputs, check it."""

from __future__ import annotations

from typing import Any

from gradsmith.checking import Options, examine, examine_declared, unverified
from gradsmith.findings import GradsmithError, Report, Subject, one_line
from gradsmith.inputs.declared import built, from_text
from gradsmith.lab import device, stages
from gradsmith.lab.importing import lookup
from gradsmith.lab.lifting import NotLiftable
from gradsmith.lab.named import found
from gradsmith.lab.state import seed_all
from gradsmith.lab.target import Target, resolve


def report_on(module: Any, task: dict[str, Any]) -> Report:
    """The report on one subject; every foreseeable trouble is a verdict, not an exception."""
    name = task["subject"]
    if task.get("result"):
        stages.works_on(task["result"])
    try:
        target = resolve(lookup(module, name))
    except AttributeError as error:
        why = f": {error}" if isinstance(error, NotLiftable) else ""
        reason = f"{name} is not reachable from the module's top level{why}"
        return Report(subjects=[Subject(name, "unverified", reason, task.get("path"), task.get("line"))], functions=1)
    except GradsmithError as error:
        return Report(subjects=[Subject(name, "unverified", str(error), task.get("path"))], functions=1)
    try:
        return _examined(target, module, task)
    except GradsmithError as error:
        return unverified(target, str(error))


def _examined(target: Target, module: Any, task: dict[str, Any]) -> Report:
    options = _options(task["options"], module)
    where = device.named(task.get("device"))
    if task.get("tensors"):
        import torch

        args, kwargs = torch.load(task["tensors"], weights_only=True)
        return examine(target, [(tuple(args), kwargs)], "given", options)
    if task.get("inputs"):
        seed_all(options.seed)
        try:
            args, kwargs = built(from_text(task["inputs"], module))
        except GradsmithError:
            raise
        except Exception as error:  # evaluating the user's own expression
            return unverified(target, f"--inputs raises {one_line(error)}")
        return examine(target, [(args, kwargs)], "given", options)
    return examine_declared(target, options, module, where)


def _options(told: dict[str, Any], module: Any) -> Options:
    """The options of the check, with the functions among them found by their names."""
    functions = {key: found(told[key], module) for key in ("reference", "project", "like") if told.get(key)}
    return Options(**{**told, **functions, "isolated": True})
