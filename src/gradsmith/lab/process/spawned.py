"""One subject in a Python that was started for it: what a worker of the zygote does, where processes cannot be forked.

Run as `python -m gradsmith.lab.process.spawned TASK WORKER`. TASK is a JSON file: what to open, which subject, where the answers go.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from gradsmith.lab.process import witness
from gradsmith.lab.process.channel import LONGEST, Message, write_message
from gradsmith.lab.process.user_module import opened


def main() -> None:
    task: Message = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    witness.watch(Path(sys.argv[1]).parent)
    import torch

    from gradsmith.lab.triton.importing import interpret

    torch.set_num_threads(1)
    worker: Any = importlib.import_module(sys.argv[2])
    worker.prepare()
    interpret()
    witness.from_now()
    module, told = opened(task)
    write_message(Path(task["opened"]), json.dumps(told))
    if module is None or "subject" not in task:
        return
    text = json.dumps({**worker.report_on(module, task).to_dict(), "seen": witness.told()}, allow_nan=False)
    if len(text) <= LONGEST:
        write_message(Path(task["result"]), text)


if __name__ == "__main__":
    main()
