"""One check or one derivation, in a process of its own: the task comes as one line of JSON, and lines of JSON go out.

`{"say": ...}` is what is being tried, `{"done": ...}` the result, `{"refused": ...}` a sentence that says why there is none.
A TERM ends it in order, as it ends `gradsmith check`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradsmith.findings import Finding, GradsmithError, one_line
from gradsmith.lab.process import bond
from gradsmith.lab.process.household import household
from gradsmith.lab.process.stopping import Stopped, orderly
from gradsmith.source import notebook

Say = Callable[[dict[str, Any]], None]


def main() -> None:
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the user's module prints is not an answer

    def say(what: dict[str, Any]) -> None:
        out.write(json.dumps(what).encode() + b"\n")
        out.flush()

    task = json.loads(sys.stdin.buffer.readline())
    try:
        with orderly():
            bond.die_with(task["parent"], 15)
            say({"done": {"check": _checked, "derive": _derived}[task["do"]](task, say)})
    except Stopped as stopped:
        sys.exit(stopped.status)
    except GradsmithError as error:
        say({"refused": str(error)})
    except Exception as error:  # ours to fix; the user gets one sentence
        say({"refused": f"gradsmith failed: {one_line(error)}"})


def _checked(task: dict[str, Any], say: Say) -> dict[str, Any]:
    """The report on one subject, as `gradsmith check FILE::NAME` makes it."""
    from gradsmith.checking.jobs import Running
    from gradsmith.checking.options import Options
    from gradsmith.checking.paths import linted_and_run, with_config
    from gradsmith.checking.subjects import wanted
    from gradsmith.config import load

    config = load(Path(task["path"]).parent)
    target = f"{task['path']}::{task['name']}"
    said = {name: value for name in ("level", "seed") if (value := getattr(config, name)) is not None}
    options = with_config(Options.of(said), config)
    how = Running(options.as_json(), on_stage=lambda what: say({"say": what}))
    with household():
        report = linted_and_run([target], wanted([target], config), how, config, cache=True)
    return report.to_dict()


def _derived(task: dict[str, Any], say: Say) -> dict[str, Any]:
    """The edits that write a derived backward into the class."""
    from gradsmith.torch_here import need_torch

    need_torch("deriving a backward")
    from gradsmith.inputs.lifting import lookup
    from gradsmith.lab.subject.opening import open_file
    from gradsmith.writing.backward import derived_backward

    say({"say": f"{task['name']}: importing {os.path.basename(task['path'])}"})
    with household():
        module = open_file(Path(task["path"]), subjects=[task["name"]]).module
        say({"say": f"{task['name']}: deriving backward"})
        edits = derived_backward(lookup(module, task["name"]))
    placed = Finding("", line=edits[0].line, edits=edits)
    if task["path"].endswith(notebook.ENDING):
        placed = notebook.read(Path(task["path"]).read_bytes()).placed(placed)
    return {"edits": [{"cell": placed.cell, **vars(edit)} for edit in placed.edits]}


if __name__ == "__main__":
    main()
