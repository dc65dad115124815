"""Worker processes that inherit the function, can be stopped, and are replaced when they die."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from gradsmith.external.errors import EvaluationLost, ExternalError
from gradsmith.external.foreign import Answer, Failure, answer
from gradsmith.findings import one_line

_TRIES = 3


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    task: int | None = None
    since: float = 0.0


class Pool:
    """N processes, forked where the system can: they know the function without pickling it (closures, ctypes).

    An evaluation whose process dies is given to another, three times; one that passes the time limit is stopped with its
    process. Processes and not threads, so that a function need not be thread-safe.
    """

    def __init__(self, fn: Callable[..., Any], name: str, workers: int, timeout: float | None) -> None:
        self.fn, self.name, self.number, self.timeout = fn, name, workers, timeout
        methods = multiprocessing.get_all_start_methods()
        self.context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        self.workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _end, self.workers)

    def close(self) -> None:
        _end(self.workers)

    def run(self, tasks: Sequence[Any], advance: Callable[[], None]) -> list[Answer | Failure]:
        """The answer to every task, in order."""
        found: list[Answer | Failure | None] = [None] * len(tasks)
        waiting = deque(range(len(tasks)))
        lost: dict[int, int] = {}
        left = len(tasks)
        try:
            while left:
                self._start(min(self.number, len(tasks)))
                for worker in self.workers:
                    if worker.task is None and waiting:
                        self._give(worker, waiting.popleft(), tasks)
                for worker in self._ready():
                    task = worker.task
                    if task is None:  # pragma: no cover - an idle worker that died is replaced by _start
                        self._drop(worker)
                        continue
                    try:
                        got = worker.pipe.recv()
                    except (EOFError, OSError):
                        self._drop(worker)
                        lost[task] = lost.get(task, 0) + 1
                        if lost[task] >= _TRIES:
                            raise self._died(worker, task, len(tasks)) from None
                        waiting.append(task)
                        continue
                    worker.task = None
                    found[task] = got
                    left -= 1
                    advance()
        except BaseException:
            self.close()  # what is still running belongs to nobody any more
            raise
        return [f for f in found if f is not None]

    def _start(self, wanted: int) -> None:
        for worker in [w for w in self.workers if w.task is None and not w.process.is_alive()]:
            self._drop(worker)
        while len(self.workers) < wanted:
            ours, theirs = self.context.Pipe()
            others = [w.pipe for w in self.workers] + [ours]
            process = self.context.Process(target=_work, args=(self.fn, theirs, others), daemon=True)
            try:
                process.start()
            except Exception as error:
                raise ExternalError(
                    f"{self.name} cannot be sent to a worker process: {one_line(error)}. Define it at the top level of a module."
                ) from error
            theirs.close()
            self.workers.append(_Worker(process, ours))

    def _give(self, worker: _Worker, task: int, tasks: Sequence[Any]) -> None:
        worker.task, worker.since = task, time.monotonic()
        with contextlib.suppress(BrokenPipeError, OSError):  # it died meanwhile: reading from it will say so
            worker.pipe.send(tasks[task])

    def _ready(self) -> list[_Worker]:
        busy = {w.pipe: w for w in self.workers if w.task is not None}
        if self.timeout is None:
            return [busy[p] for p in wait(list(busy))]  # type: ignore[index]
        soonest = min(w.since for w in busy.values()) + self.timeout - time.monotonic()
        ready = [busy[p] for p in wait(list(busy), max(soonest, 0.0))]  # type: ignore[index]
        now = time.monotonic()
        late = [w for w in busy.values() if w not in ready and now - w.since >= self.timeout]
        if late:
            for worker in late:
                self._drop(worker)
            raise EvaluationLost(
                f"an evaluation of {self.name} did not return within {self.timeout:g} s (timeout=). Its process was stopped, and no "
                "gradient was made without it."
            )
        return ready

    def _drop(self, worker: _Worker) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
        _end([worker])

    def _died(self, worker: _Worker, task: int, total: int) -> EvaluationLost:
        code = worker.process.exitcode
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code is not None and code < 0
            else f"ended with status {code}"
        )
        return EvaluationLost(
            f"evaluation {task + 1} of {total} of {self.name} ended its worker process {_TRIES} times (the last one {how}). No "
            "gradient was made without it."
        )


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.pipe.close()
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join(timeout=5)
    workers.clear()


def _work(fn: Callable[..., Any], pipe: Connection, others: list[Connection]) -> None:
    """The life of a worker: a task in, an answer out, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked
    for other in others:  # inherited ends would keep pipes open whose owner has gone
        other.close()
    while True:
        try:
            args, kwargs = pipe.recv()
        except (EOFError, OSError):
            os._exit(0)
        got = answer(fn, args, kwargs)
        try:
            pipe.send(got)
        except (BrokenPipeError, OSError):
            os._exit(0)
        except Exception as error:  # an answer that cannot travel
            pipe.send(Failure(one_line(error)))
