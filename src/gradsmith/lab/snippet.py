"""A script in plain PyTorch that shows a finding again, without gradsmith.

It loads the user's file, builds the inputs, and runs a demonstration that raises while the defect is there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from gradsmith.findings import Finding, Reproduction
from gradsmith.lab.demonstrations import BODIES, PRELUDE
from gradsmith.lab.demonstrations.ranks import LAUNCHER
from gradsmith.lab.lab import Lab
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.binding import TRAINING
from gradsmith.lab.subject.code import as_code, exact_code
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import holds_wrapped
from gradsmith.source.module_names import package_name


def reproduction(finding: Finding, lab: Lab, body: str) -> Reproduction:
    """Seed, inputs and the script with this body, for a finding whose probe brought none of its own."""
    element = finding.evidence.get("element")
    # What only shows in the user's own precision has to be shown there; what raises may raise in any other as well.
    arguments = lab.arguments if body in ("run", "dtype") else lab.precise[1]
    made = demonstration(lab, arguments, body, finding.argument, element)
    return Reproduction(lab.settings.seed, as_code(lab.arguments), made.snippet)


def demonstration(
    lab: Lab,
    arguments: Arguments,
    body: str,
    argument: str | None = None,
    element: Sequence[int] | None = None,
    extra: str = "",
) -> Reproduction:
    """The script for these arguments. `element` of `argument` is where a wrong gradient shows."""
    seed, shown = lab.settings.seed, as_code(arguments)
    reach, inputs = _reach(lab.target), _inputs(lab, arguments)
    if not reach or not inputs or BODIES.get(body) is None:
        return Reproduction(seed, shown)
    names = [leaf.name for leaf in arguments.differentiable]
    focus = names.index(argument) if argument in names and element is not None else -1
    lines = [
        "# Plain PyTorch: this script raises, or exits with 1, while the defect is there.",
        reach,
        PRELUDE,
        f"torch.manual_seed({seed})",
        f"inputs, keywords = {inputs}",
        f"seed, focus, element = {seed}, {focus}, {tuple(element) if element is not None else ()}",
        *([extra] if extra else []),
        BODIES[body],
    ]
    return Reproduction(seed, shown, "\n".join(line.strip("\n") for line in lines) + "\n")


def on_two_ranks(lab: Lab, arguments: Arguments, batch: list[int], trained: list[int]) -> Reproduction:
    """A script that starts two gloo ranks: the inputs at `batch` are split, those at `trained` are parameters."""
    rank = demonstration(lab, arguments, "ranks", extra=f"batch, trained = {batch}, {trained}")
    return replace(rank, snippet=LAUNCHER.replace("SCRIPT", rank.snippet)) if rank.snippet else rank


def importing(path: str) -> str:
    """The lines that load the user's file, under its package name where it has one."""
    root, name = package_name(Path(path).resolve())
    head = f"import importlib.util, sys\nimport torch\nfrom torch.utils._pytree import tree_map, tree_leaves\nsys.path.insert(0, {str(root)!r})"
    if "." in name:
        return f"{head}\nsubject = importlib.import_module({name!r})".replace("importlib.util", "importlib")
    return (
        f"{head}\nspec = importlib.util.spec_from_file_location('subject', {str(Path(path).resolve())!r})\n"
        "subject = sys.modules['subject'] = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(subject)"
    )


def _reach(target: Target) -> str:
    """Lines that define `fn`, or nothing where the subject has no name that another process could use."""
    if target.path is None or not Path(target.path).is_file():
        return ""
    if target.function is not None:
        name = target.function.__qualname__
        return "" if "<locals>" in name else f"{importing(target.path)}\nfn = subject.{name}.apply"
    name = _global_name(target)
    if not name:
        return ""
    if target.module is None:
        return f"{importing(target.path)}\nfn = subject.{name}"
    call = "torch.func.functional_call(model, parameters, args, kwargs)"
    mode = f"if {TRAINING!r} in kwargs:\n        model.train(kwargs.pop({TRAINING!r}))"
    body = f"    {mode}\n    return {call}"
    return f"{importing(target.path)}\nmodel = subject.{name}\ndef fn(parameters, *args, **kwargs):\n{body}"


def _global_name(target: Target) -> str:
    """The name under which the user's module holds the subject."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and target.path and Path(file) == Path(target.path):
            for name, value in vars(module).items():
                if value is target.original:
                    return name
    return ""


def _inputs(lab: Lab, arguments: Arguments) -> str:
    """`(args, kwargs)` as code; what code cannot say comes from the declaration in the user's file."""
    sayable = all(v is None or isinstance(v, (Tensor, bool, int, float, str, complex)) for v in arguments.flat)
    if sayable and not holds_wrapped(arguments.spec):
        return exact_code(arguments)
    if lab.declared_at is None or not any(isinstance(v, nn.Module) for v in arguments.flat):
        return ""
    name, index = lab.declared_at
    return f"declared(subject.gradsmith_inputs[{name!r}], {index})"


def flat_values(value: Any) -> list[Any]:
    return pytree.tree_leaves(value)
