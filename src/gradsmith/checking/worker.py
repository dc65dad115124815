"""What a worker does with one subject: find it in the user's module, find its inputs, check it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from gradsmith import catalog
from gradsmith.about import WRONG_INPUTS
from gradsmith.checking import verdict
from gradsmith.checking.inside import examine_whole
from gradsmith.checking.options import Options
from gradsmith.checking.run import examine_supplied, unverified
from gradsmith.findings import GradsmithError, Report, one_line
from gradsmith.inputs.declared import built, from_text
from gradsmith.inputs.examples import Supply
from gradsmith.inputs.lifting import NotLiftable, lookup
from gradsmith.lab.process import device, memory_left, stages
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.subject.binding import positional
from gradsmith.lab.subject.target import Target, resolve

_USUAL = (
    "gradsmith.checking.assuming",
    "gradsmith.lab.conditions.uninitialised",
    "gradsmith.lab.triton.shims",
    "gradsmith.lab.triton.witness",
    "gradsmith.source.differences",
    "numpy.random",  # whose state is put back after each run
)


def prepare() -> None:
    """What every worker needs, loaded before the first of them is forked."""
    catalog.rules()


def later(*, compiles: bool) -> list[str]:
    """Names of modules that most checks load when they come to it, with conditions only where those are asked for; those for
    kernels are for kernels alone.
    """
    packages = [
        importlib.import_module(name) for name in ("gradsmith.lab", *(["gradsmith.linting"] if compiles else []))
    ]
    found = [m.name for p in packages for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.") if not m.ispkg]
    seldom = [
        f"gradsmith.lab.{name}."
        for name in ("triton", "process", *([] if compiles else ["conditions", "demonstrations"]))
    ]
    return [*(name for name in found if not name.startswith(tuple(seldom))), *_USUAL]


def report_on(module: Any, task: dict[str, Any]) -> Report:
    """The report on one subject; every foreseeable trouble is a verdict, not an exception."""
    name = task["subject"]
    if task.get("result"):
        stages.works_on(task["result"])
    if task.get("memory"):
        memory_left.limited_to(task["memory"])
    try:
        target = resolve(lookup(module, name))
    except AttributeError as error:
        why = f": {error}" if isinstance(error, NotLiftable) else ""
        reason = f"{name} is not reachable from the module's top level{why}"
        subject = verdict.unverified(name, reason, task.get("path"), task.get("line"))
        return Report(subjects=[subject], functions=1)
    except GradsmithError as error:
        return Report(subjects=[verdict.unverified(name, str(error), task.get("path"))], functions=1)
    try:
        return _examined(target, module, task)
    except GradsmithError as error:
        return unverified(target, str(error))


def _examined(target: Target, module: Any, task: dict[str, Any]) -> Report:
    options = Options.from_json(task["options"], module)
    where = device.named(task.get("device"))
    if task.get("tensors"):
        import torch

        args, kwargs = torch.load(task["tensors"], weights_only=True)
        return examine_whole(target, Supply(((tuple(args), kwargs),), "given"), options)
    if task.get("inputs"):
        seed_all(options.seed)
        try:
            args, kwargs = built(from_text(task["inputs"], module))
        except GradsmithError:
            raise
        except Exception as error:  # evaluating the user's own expression
            return unverified(target, f"{WRONG_INPUTS}raises {one_line(error)}")
        if target.function is not None:
            try:
                positional(target, args, kwargs)
            except GradsmithError as error:
                return unverified(target, f"{WRONG_INPUTS}cannot be used: {error}")
        return examine_whole(target, Supply(((args, kwargs),), "given"), options)
    return examine_supplied(target, options, module, where, stages.inputs_are_guessed, own_process=True)
