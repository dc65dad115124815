"""For how many drawn Functions inputs are guessed, without checking any: seconds for each instead of half a minute.

    python benchmarks/fresh_guess.py first                   the whole draw; writes fresh/first.guessed.json, later ....again.json
    python benchmarks/fresh_guess.py first Scan lxt          those of these classes or packages alone, printed in full

Every Function is opened and supplied as `gradsmith check FILE::CLASS` does it, in a process of its own, forked from one
that has imported torch and never computed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from fresh_packages import HERE, PLACE

LIMIT = 120  # seconds of processor time for one Function


def main() -> None:
    from gradsmith.lab.triton.importing import interpret

    interpret()  # as a worker of `gradsmith check` does
    import gradsmith.inputs.supply
    import gradsmith.lab.subject.opening  # noqa: F401

    name, wanted = sys.argv[1], set(sys.argv[2:])
    rows: list[dict[str, Any]] = json.loads((HERE / f"{name}.json").read_text())
    chosen = [row for row in rows if not wanted or {row["name"].rpartition(".")[2], row["package"]} & wanted]
    told = [_in_a_process(row, in_full=bool(wanted)) for row in chosen]
    found = sum(t["source"] != "none" for t in told)
    print(f"{found} of {len(told)} have inputs ({found / max(len(told), 1):.0%})")
    if not wanted:
        first, again = HERE / f"{name}.guessed.json", HERE / f"{name}.guessed.again.json"
        (again if first.exists() else first).write_text(json.dumps(told, indent=1) + "\n")


def _in_a_process(row: dict[str, Any], *, in_full: bool) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.setitimer(signal.ITIMER_PROF, LIMIT)  # its default action ends the process
        null = os.open(os.devnull, os.O_WRONLY)
        if not in_full:
            os.dup2(null, 2)
        os.dup2(null, 1)
        try:
            os.write(writing, json.dumps(_supplied(row)).encode())
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    told = {k: row[k] for k in ("package", "path", "name")}
    told |= json.loads(answer) if answer else {"source": "none", "why": "crashed, or took too long"}
    words = told.get("why") or told["code"]
    print(row["package"], row["name"], told["source"], "|", words if in_full else words[:110], flush=True)
    return told


def _supplied(row: dict[str, Any]) -> dict[str, str]:
    import torch

    from gradsmith.findings import GradsmithError
    from gradsmith.inputs.examples import Wish
    from gradsmith.inputs.lifting import lookup
    from gradsmith.inputs.supply import supply
    from gradsmith.lab.subject.importing import ImportFailed
    from gradsmith.lab.subject.opening import open_file
    from gradsmith.lab.subject.target import resolve
    from gradsmith.lab.triton.importing import watch

    torch.set_num_threads(1)
    path: Path = PLACE / f"{row['package']}-{row['version']}" / row["path"]
    watch(str(path))
    try:
        module = open_file(path, (), [row["name"]]).module
        given = supply(resolve(lookup(module, row["name"])), Wish(module=module, own_process=True))
    except (ImportFailed, GradsmithError, AttributeError) as error:
        return {"source": "none", "why": f"{type(error).__name__}: {error}"[:600], "code": ""}
    return {"source": "none" if given.missing else given.source, "why": given.missing or "", "code": given.code[:600]}


if __name__ == "__main__":
    main()
