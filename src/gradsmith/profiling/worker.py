"""Profile one subject in a process of its own: `python -m gradsmith.profiling.worker TASK RESULT`, both JSON files.

User code may hang or crash; the process that waits can end this one and still say what happened.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gradsmith.findings import GradsmithError


def main() -> None:
    task: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        result = _work(task)
    except GradsmithError as error:
        result = {"error": str(error)}
    partial = Path(sys.argv[2] + ".part")
    partial.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    partial.rename(sys.argv[2])


def _work(task: dict[str, Any]) -> dict[str, Any]:
    import torch

    from gradsmith.findings import jsonable
    from gradsmith.inputs.declared import built, from_text
    from gradsmith.lab import device, resolve
    from gradsmith.lab.state import seed_all
    from gradsmith.profiling.compare import compare
    from gradsmith.profiling.export import chrome_trace, flame
    from gradsmith.profiling.measuring import Wishes, declared_example, profile_target

    if task.get("threads"):
        torch.set_num_threads(task["threads"])
    module = _imported(task["path"], task["module"])
    subject = _subject(module, task["name"])
    target = resolve(subject)
    seed_all(task["seed"])
    if task["inputs"]:
        args, kwargs = built(from_text(task["inputs"], module))
    else:
        args, kwargs = declared_example(target, task["seed"], module)
    where = device.named(task["device"])
    if where is not None:
        args, kwargs = _moved(args, where), {k: _moved((v,), where)[0] for k, v in kwargs.items()}
    reference = _subject(module, task["reference"]) if task["reference"] else None
    wishes = Wishes(
        task["budget"],
        task["growth"],
        task["try_remedies"],
        reference,
        task["seed"],
        tuple(task["select"]),
        tuple(task["ignore"]),
        lambda text: print(text, file=sys.stderr, flush=True),
    )
    result = profile_target(target, args, kwargs, wishes)
    out = {"profile": jsonable(result.to_dict()), "flame": flame(result)}
    if task["trace"]:
        out["trace"] = chrome_trace(result)
    if task["compare"]:
        path, _, name = task["compare"].partition("::")
        other = _subject(_imported(path, None), name)
        out["comparison"] = str(compare(subject, other, *args, kwargs=kwargs, budget=task["budget"] / 2))
    return out


def _imported(path: str | None, module: str | None) -> Any:
    from gradsmith.lab.importing import ImportFailed, import_dotted, import_file

    try:
        return import_file(Path(path), []) if path else import_dotted(module or "", [])
    except ImportFailed as error:
        raise GradsmithError(f"{path or module} cannot be imported: {error}") from None


def _subject(module: Any, name: str) -> Any:
    """The subject of this name; a layer's class is built where it needs no arguments."""
    import torch

    from gradsmith.lab.importing import lookup

    try:
        found = lookup(module, name)
    except AttributeError:
        raise GradsmithError(f"{name} is not reachable from the module's top level") from None
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        try:
            return found()
        except TypeError as error:
            text = f"{name} is a class, and building it needs arguments ({error}); write e.g. `layer = {name}(...)`"
            raise GradsmithError(f"{text} in the file and profile `layer`") from None
    return found


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
