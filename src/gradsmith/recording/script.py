"""Run a user's script as Python would, with a tape running, and keep its exit status."""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsmith.findings import GradsmithError
from gradsmith.recording.ranks import recorded_children
from gradsmith.recording.tape import Tape


@dataclass
class Played:
    """A script that has ended: what ran in it, and how it ended. `child`: this is a fork that ran on past the end."""

    tape: Tape
    status: int
    child: bool


@contextlib.contextmanager
def play(script: str, arguments: Sequence[str], *, as_module: bool = False) -> Iterator[Played]:
    """Run `script` (a file, or a module name) under the name `__main__`, which it keeps inside the block.

    Its classes are looked up by that name when a report quotes their source.
    """
    if not as_module and not Path(script).is_file():
        raise GradsmithError(f"no such script: {script}")
    tape, owner = Tape(), os.getpid()
    kept_argv, kept_main, kept_path = sys.argv, sys.modules.get("__main__"), list(sys.path)
    sys.argv = [script, *arguments]
    try:
        with tape, recorded_children(), _ended_by_sigterm():
            if as_module:
                sys.path.insert(0, os.getcwd())
                status = _status(lambda: runpy.run_module(script, run_name="__main__", alter_sys=True))
            else:
                main = _as_main(Path(script))
                status = _status(lambda: exec(_code(Path(script)), vars(main)))
        yield Played(tape, status, os.getpid() != owner)
    finally:
        sys.argv, sys.path[:] = kept_argv, kept_path
        if kept_main is not None:
            sys.modules["__main__"] = kept_main


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """`kill`, `timeout`, a cluster's scheduler, torchrun after another rank failed: an end like others, with a report.

    A script that has its own handler keeps it.
    """

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _as_main(path: Path) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__file__ = str(path)
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.path.insert(0, str(path.resolve().parent))
    return main


def _code(path: Path) -> types.CodeType:
    return compile(path.read_bytes(), str(path), "exec")


def _status(run: Any) -> int:
    """What the shell would have seen: 0, the code of SystemExit, 1 for an exception, 130 for Ctrl-C, 143 for SIGTERM."""
    try:
        run()
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        _show(error)
        return 1
    return 0


def _show(error: BaseException) -> None:
    """The traceback as the user's script would have shown it, without our frames at its top."""
    trace = error.__traceback__
    while trace is not None and _ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _ours(path: str) -> bool:
    return Path(path) == Path(__file__) or path.startswith("<frozen runpy") or Path(path).name == "runpy.py"
