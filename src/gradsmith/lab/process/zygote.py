"""The zygote: a process that has imported torch, never computes, and forks.

For each file it forks a keeper, which imports the user's module once; the keeper forks a worker per subject, which
checks it and writes a JSON report to a file. A worker may hang, crash or be killed without harm to the others.
Requests and replies are one JSON object per line on descriptors of their own; whatever user code prints goes to a log.

Run as `python -m gradsmith.lab.process.zygote REQUESTS REPLIES WORKER` with two inherited file descriptors and the name of the
module that does the work: `prepare()` is called once, `report_on(module, task)` for each subject.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gradsmith.lab.process import witness

Message = dict[str, Any]


class Line:
    """One end of the conversation. Unbuffered, because processes that fork must not share a read-ahead."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies = requests, replies

    def read(self) -> Message | None:
        data = bytearray()
        while not data.endswith(b"\n"):
            piece = os.read(self.requests, 1)
            if not piece:
                return None
            data += piece
        message: Message = json.loads(data)
        return message

    def reply(self, **message: Any) -> None:
        os.write(self.replies, json.dumps(message).encode() + b"\n")


def main() -> None:
    witness.watch()
    gc.disable()  # while half a million objects are made to stay: a sixth of the import's time
    import torch

    from gradsmith.lab.triton.importing import interpret

    # One thread: no thread pool exists in a process that forks, so a fork can never inherit a held lock.
    torch.set_num_threads(1)
    worker = importlib.import_module(sys.argv[3])  # here once, so that workers need not
    worker.prepare()
    interpret()
    _settle()
    line = Line(int(sys.argv[1]), int(sys.argv[2]))
    line.reply(ready=True)
    warm = "--warm" in sys.argv
    for number in itertools.count():
        request = line.read()
        if request is None:
            return
        if number == 1:
            _warm_up(_COMPILER if warm else _GRADIENTS)
        request.update(first=number == 0, warm=warm)
        pid = _forked(lambda request=request: _keep(request, line, worker.report_on), request["log"])  # type: ignore[misc]
        line.reply(keeper=pid)
        line.reply(keeper_exit=_status(pid))


# What torch imports when it is first used: once, instead of once in every worker. The very first worker does not wait
# for it, because many a verdict (a wrong gradient) does not need it: its keeper imports meanwhile.
_GRADIENTS = ("torch.fx.experimental.symbolic_shapes",)  # autograd.grad with grad_outputs: sympy, 0.7 s
_COMPILER = (  # torch.compile: 3 s in all
    *_GRADIENTS,
    "torch._dynamo.convert_frame",
    "torch._dynamo.backends.debugging",
    "torch._dynamo.repro.after_aot",
    "torch._functorch.aot_autograd",
    "torch._inductor.scheduler",
    "torch.nn.attention.flex_attention",
    "torch.export._trace",
    "torch.utils.checkpoint",
)


def _settle() -> None:
    """What was imported stays: the collector of a worker need not look at it, nor its memory be copied for that."""
    gc.freeze()
    gc.enable()


def _warm_up(names: Sequence[str]) -> None:
    gc.disable()
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:  # another torch keeps it elsewhere; the worker then pays for it
            continue
    _settle()


def _keep(request: Message, line: Line, report_on: Callable[[Any, Message], Any]) -> None:
    """Import one module, then fork a worker for each subject that is asked for.

    While the very first worker is busy, what later ones will need is imported.
    """
    from gradsmith.lab.subject.importing import ImportFailed, import_dotted
    from gradsmith.lab.subject.opening import Opening, open_file
    from gradsmith.lab.triton.importing import watch

    witness.from_now()
    watch(request.get("path"))
    try:
        if request.get("module"):
            opening = Opening(import_dotted(request["module"], request["stubs"]))
        else:
            opening = open_file(Path(request["path"]), request["stubs"], request["subjects"])
    except ImportFailed as error:
        line.reply(imported=False, error=str(error))
        return
    module = opening.module
    declared = list(getattr(module, "gradsmith_inputs", {}))
    line.reply(imported=True, declared=declared, trouble=opening.trouble, instead=opening.instead)
    while (task := line.read()) is not None and "subject" in task:
        pid = _forked(lambda task=task: _work(module, task, report_on), request["log"])  # type: ignore[misc]
        line.reply(worker=pid)
        if request.pop("first", False):
            _warm_up(_COMPILER if request["warm"] else _GRADIENTS)
        _, status, used = os.wait4(pid, 0)
        line.reply(worker_exit=os.waitstatus_to_exitcode(status), cpu=used.ru_utime + used.ru_stime)


def _work(module: Any, task: Message, report_on: Callable[[Any, Message], Any]) -> None:
    result = {**report_on(module, task).to_dict(), "seen": witness.told()}
    partial = Path(task["result"] + ".part")
    partial.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    partial.rename(task["result"])


def _forked(action: Callable[[], None], log: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        action()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _status(pid: int) -> int:
    """Exit code of the child, negative for a signal."""
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
