"""The zygote: a process that has imported torch, never computes, and forks.

For each file it forks a keeper, which imports the user's module once; the keeper forks a worker per subject, which
checks it and writes a JSON report to a file. A worker may hang, crash or be killed without harm to the others. Between the
command and the zygote stands a process that only waits: neither the parent nor the grandparent of user code is the command.
It forks before anything is imported, so it costs nothing. None of them outlives the process that started it, and what a subject started ends with its worker: orphans come to
the keeper, and from a keeper that died to the zygote. Whatever user code prints is dropped.

Run as `python -m gradsmith.lab.process.zygote FOLDER WORKER` with the nonce of the conversation on standard input.
FOLDER has the named pipes; WORKER is the module that does the work: `prepare()` is called once, `report_on(module, task)`
for each subject. `later(...)` names what most subjects load: it is loaded once, as soon as there are several of them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gradsmith.lab.process import witness
from gradsmith.lab.process.bond import adopt_orphans, die_with
from gradsmith.lab.process.channel import LONGEST, Channel, Message, Parted, write_message
from gradsmith.lab.process.freezing import freeze
from gradsmith.lab.process.tree import children, end_below
from gradsmith.lab.process.user_module import opened

_SPARE = 64  # descriptors that a subject leaves for its report


class Conversation:
    """One end of the conversation."""

    def __init__(self, folder: Path, nonce: str) -> None:
        self.requests, self.replies = Channel(folder / "requests", nonce), Channel(folder / "replies", nonce)

    def read(self) -> Message | None:
        try:
            return self.requests.receive()
        except Parted:
            return None

    def reply(self, **message: Any) -> None:
        self.replies.send(**message)


def main() -> None:
    folder, waiting = Path(sys.argv[1]), os.getpid()
    _leave_with(os.getppid(), lambda: shutil.rmtree(folder.parent, ignore_errors=True))
    if pid := os.fork():
        _end_as(_status(pid))
    _leave_with(waiting)
    _serve(folder)


def _serve(folder: Path) -> None:
    line = Conversation(folder, sys.stdin.readline().strip())
    witness.watch(folder)
    gc.disable()  # while half a million objects are made to stay: a sixth of the import's time
    import torch

    from gradsmith.lab.triton.importing import interpret

    # One thread: no thread pool exists in a process that forks, so a fork can never inherit a held lock.
    torch.set_num_threads(1)
    worker = importlib.import_module(sys.argv[2])  # here once, so that workers need not
    worker.prepare()
    interpret()
    _settle()
    line.reply(ready=True)
    warm = "--warm" in sys.argv
    needed = (*(_COMPILER if warm else _GRADIENTS), *worker.later(compiles=warm))
    for number in itertools.count():
        request = line.read()
        if request is None:
            return
        if "subjects" not in request:
            continue  # for a keeper that is gone, which whoever asked is told
        if number == 1:
            _warm_up(needed)
        request.update(needed=needed if number == 0 else ())
        pid = _forked(lambda request=request: _keep(request, line, worker.report_on))  # type: ignore[misc]
        status = _status(pid)
        end_below(os.getpid())
        line.reply(keeper_exit=status)


def _leave_with(parent: int, clear_up: Callable[[], None] = lambda: None) -> None:
    """When the process that started this one is gone, end all that is below, clear up in its place, and leave."""

    def leave(number: int, frame: object) -> None:
        end_below(os.getpid())
        if os.getppid() != parent:
            clear_up()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    adopt_orphans()
    die_with(parent, signal.SIGTERM)


# What torch imports when it is first used: once, instead of once in every worker. The very first worker does not wait for it,
# because many a verdict (a wrong gradient) does not need it. Where others of its file will follow, its keeper imports meanwhile.
_GRADIENTS = ("torch.fx.experimental.symbolic_shapes",)  # autograd.grad with grad_outputs: sympy, 0.7 s
_COMPILER = (  # torch.compile: 3 s in all
    *_GRADIENTS,
    "torch._dynamo.convert_frame",
    "torch._dynamo.backends.debugging",
    "torch._dynamo.repro.after_aot",
    "torch._functorch.aot_autograd",
    "torch._inductor.scheduler",
    "torch._inductor.pattern_matcher",  # for one function of it: 0.35 s
    "torch._inductor.compiler_bisector",
    "torch._higher_order_ops.passes",
    "torch._subclasses.schema_check_mode",
    "torch._dynamo.backends.cudagraphs",
    "torch._dynamo.backends.distributed",
    "torch._dynamo.backends.inductor",
    "torch._dynamo.backends.onnxrt",
    "torch._dynamo.backends.tensorrt",
    "torch._dynamo.backends.torchxla",
    "torch._dynamo.backends.tvm",
    "torch._dynamo.repro.after_dynamo",
    "torch.distributed.tensor.experimental",
    "torch.nn.attention.flex_attention",
    "torch.export._trace",
    "torch.utils.checkpoint",
    "sympy.combinatorics",
    "sympy.tensor.tensor",
)


def _settle() -> None:
    """What was imported stays."""
    freeze()
    gc.enable()
    witness.settle()


def _warm_up(names: Sequence[str]) -> None:
    if all(name in sys.modules for name in names):
        return
    gc.disable()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # another torch keeps it elsewhere, or loads it otherwise; the worker then pays for it
            continue
    _settle()


def _end_as(status: int) -> NoReturn:
    """End as a child has ended."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one dump is enough
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _keep(request: Message, line: Conversation, report_on: Callable[[Any, Message], Any]) -> None:
    """Import one module, then fork a worker for each subject that is asked for.

    While the very first worker is busy, what later ones will need is imported; nothing, where it is the only one.
    """
    adopt_orphans()
    line.reply(keeper=os.getpid())
    witness.from_now()
    module, told = opened(request)
    line.reply(**told)
    if module is None:
        return
    needed, expected = request["needed"], len(request["subjects"])
    for number in itertools.count(1):
        task = line.read()
        if task is None or "subject" not in task:
            return
        if number == 2:
            _warm_up(needed)  # where it could not be known that there would be a second; else this takes no time
        before = children(os.getpid())
        pid = _forked(lambda task=task: _work(module, task, report_on))  # type: ignore[misc]
        line.reply(worker=pid)
        if number == 1 < expected:
            _warm_up(needed)
        _, status, used = os.wait4(pid, 0)
        end_below(os.getpid(), spared=before)
        line.reply(worker_exit=os.waitstatus_to_exitcode(status), cpu=used.ru_utime + used.ru_stime)


def _work(module: Any, task: Message, report_on: Callable[[Any, Message], Any]) -> None:
    pid = os.getpid()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_fewer(soft, hard), hard))
    text = json.dumps({**report_on(module, task).to_dict(), "seen": witness.told()}, allow_nan=False)
    if os.getpid() != pid:
        return  # a fork of the subject that ran on to the end: the report is its parent's
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if len(text) <= LONGEST:
        write_message(Path(task["result"]), text)


def _fewer(soft: int, hard: int) -> int:
    """A limit of open files that leaves some for the report; user code that opens all it may then fails alone."""
    known = hard if soft == resource.RLIM_INFINITY else soft
    return known if known == resource.RLIM_INFINITY else max(known - _SPARE, known // 2)


def _forked(action: Callable[[], None]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        die_with(parent)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        action()
        code = 0
    except BaseException:  # told by the status; user code may raise anything, and nobody reads what is printed here
        code = 1
    finally:
        os._exit(code)


def _status(pid: int) -> int:
    """Exit code of the child, negative for a signal."""
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
