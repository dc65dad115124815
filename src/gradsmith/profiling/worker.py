"""Profile one subject in a process of its own: `python -m gradsmith.profiling.worker TASK RESULT`, both JSON files.

User code may hang or crash; the process that waits can end this one and still say what happened.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradsmith.findings import GradsmithError
from gradsmith.lab.process.bond import die_with

if TYPE_CHECKING:
    from gradsmith.lab import Target
    from gradsmith.profiling.result import Profile
    from gradsmith.profiling.supply import Load


def main() -> None:
    task: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answer = Path(sys.argv[2])
    die_with(task["parent"])
    try:
        _write(answer, _work(task, answer))
    except GradsmithError as error:
        _write(answer, {"error": str(error)})


def _write(answer: Path, result: dict[str, Any]) -> None:
    partial = answer.with_suffix(".part")
    partial.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    partial.replace(answer)


def _work(task: dict[str, Any], answer: Path) -> dict[str, Any]:
    import torch

    from gradsmith.findings import jsonable
    from gradsmith.profiling.compare import compare
    from gradsmith.profiling.export import chrome_trace, flame
    from gradsmith.profiling.measuring import Wishes, profile_target

    def say(text: str) -> None:
        """Progress for the process that waits; user code may write to stderr as well, so the lines are marked."""
        print(f"{task['mark']}{text}", file=sys.stderr, flush=True)

    def shown(result: Profile) -> dict[str, Any]:
        out = {"profile": jsonable(result.to_dict()), "flame": flame(result)}
        return {**out, "trace": chrome_trace(result)} if task["trace"] else out

    if task.get("threads"):
        torch.set_num_threads(task["threads"])
    say("importing")
    module = _imported(task["path"], task["module"])
    wishes = Wishes(
        task["budget"],
        task["growth"],
        task["try_remedies"],
        _subject(module, task["reference"]) if task["reference"] else None,
        task["seed"],
        tuple(task["select"]),
        tuple(task["ignore"]),
        task["preview"],
        say,
        lambda result: _write(answer, {**shown(result), "unfinished": True}),
    )
    target, args, kwargs, supply = _ready(task, module)
    out = shown(profile_target(target, args, kwargs, wishes, supply))
    if task["compare"]:
        say(f"comparing with {task['compare']}")
        path, _, name = task["compare"].partition("::")
        other = _instance(_subject(_imported(path, None), name))
        out["comparison"] = str(compare(target.original, other, *args, kwargs=kwargs, budget=task["budget"] / 2))
    return out


def _ready(task: dict[str, Any], module: Any) -> tuple[Target, tuple[Any, ...], dict[str, Any], Load | None]:
    """The subject and its inputs, on the device that was asked for."""
    from gradsmith.lab import resolve
    from gradsmith.lab.process import device
    from gradsmith.lab.process.state import seed_all
    from gradsmith.profiling.supply import supplied

    target, supply = resolve(_subject(module, task["name"])), None
    seed_all(task["seed"])
    if task["inputs"]:
        args, kwargs = _given(task["inputs"], module)
        target = resolve(_instance(target.original))
    else:
        supply = supplied(target, task["seed"], module, task["recorded"])
        target, args, kwargs = supply.target, supply.args, supply.kwargs
    where = device.named(task["device"])
    if where is not None:
        args, kwargs = _moved(args, where), {k: _moved((v,), where)[0] for k, v in kwargs.items()}
        if target.module is not None:
            target.module.to(where)
    return target, args, kwargs, supply


def _imported(path: str | None, module: str | None) -> Any:
    from gradsmith.lab.subject.importing import ImportFailed, import_dotted, import_file
    from gradsmith.lab.triton.importing import watch

    watch(path)
    try:
        return import_file(Path(path), []) if path else import_dotted(module or "", [])
    except ImportFailed as error:
        raise GradsmithError(f"{path or module} cannot be imported: {error}") from None


def _subject(module: Any, name: str) -> Any:
    from gradsmith.inputs.lifting import lookup

    try:
        found = lookup(module, name)
    except AttributeError:
        raise GradsmithError(f"{name} is not reachable from the module's top level") from None
    return found


def _instance(found: Any) -> Any:
    """A layer's class is built, where it needs no arguments."""
    import torch

    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        name = found.__name__
        try:
            return found()
        except TypeError as error:
            text = f"{name} is a class, and building it needs arguments ({error}); write e.g. `layer = {name}(...)`"
            raise GradsmithError(f"{text} in the file and profile `layer`") from None
    return found


def _given(text: str, module: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from gradsmith.findings import one_line
    from gradsmith.inputs.declared import built, from_text

    try:
        return built(from_text(text, module))
    except GradsmithError:
        raise
    except Exception as error:  # evaluating the user's own expression
        raise GradsmithError(f"--inputs raises {one_line(error)}") from None


def _moved(values: tuple[Any, ...], where: Any) -> tuple[Any, ...]:
    import torch
    from torch.utils import _pytree as pytree

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(where).requires_grad_(value.requires_grad)
        return value.to(where) if isinstance(value, torch.nn.Module) else value

    moved: tuple[Any, ...] = pytree.tree_map(move, values)
    return moved


if __name__ == "__main__":
    main()
