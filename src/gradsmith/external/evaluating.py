"""Many evaluations of one function: here, in worker processes, or on an executor of the user's."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gradsmith.external.errors import EvaluationLost, ExternalError
from gradsmith.external.foreign import Answer, Failure, answer
from gradsmith.external.pool import Pool
from gradsmith.findings import one_line

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_TRIES = 3  # a worker may die of something else (memory, a preempted node); what dies three times dies of the input


@dataclass
class Evaluator:
    """Runs a function on many arguments and gives the answers in their order. Every one comes back, or an error does."""

    fn: Callable[..., Any]
    name: str
    workers: int = 0
    executor: Executor | None = None
    timeout: float | None = None
    progress: bool = False
    count: int = 0
    _pool: Pool | None = field(default=None, repr=False)
    _bar: Any = field(default=None, repr=False)

    @property
    def apart(self) -> bool:
        """Whether even a single call must run in another process: only that can be stopped."""
        return self.timeout is not None and self.executor is None

    def __call__(self, tasks: Sequence[Arguments]) -> list[Answer | Failure]:
        self.count += len(tasks)
        if self.executor is not None:
            return self._on_executor(self.executor, tasks)
        if self.workers > 1 or self.apart:
            if self._pool is None:
                self._pool = Pool(self.fn, self.name, max(self.workers, 1), self.timeout)
            return self._pool.run(tasks, self._advance)
        found = []
        for args, kwargs in tasks:
            found.append(answer(self.fn, args, kwargs))
            self._advance()
        return found

    def anew(self) -> Evaluator:
        """The same settings, without what is running."""
        return replace(self, count=0, _pool=None, _bar=None)

    def close(self) -> None:
        """End the worker processes; the next evaluation starts new ones."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    @contextmanager
    def shown(self, total: int) -> Iterator[None]:
        """A progress bar on stderr, where one was asked for."""
        if not self.progress or self._bar is not None:
            yield
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=False) as bar:
            task = bar.add_task(f"gradient of {self.name}", total=total)
            self._bar = lambda: bar.advance(task)
            try:
                yield
            finally:
                self._bar = None

    def _advance(self) -> None:
        if self._bar is not None:
            self._bar()

    def _on_executor(self, executor: Executor, tasks: Sequence[Arguments]) -> list[Answer | Failure]:
        found: list[Answer | Failure | None] = [None] * len(tasks)
        missing = list(range(len(tasks)))
        reason = ""
        for _ in range(_TRIES):
            futures = {k: self._submitted(executor, tasks[k]) for k in missing}
            missing = []
            for k, future in futures.items():
                got, reason_here = self._result(future)
                if got is None:
                    missing.append(k)
                    reason = reason_here
                else:
                    found[k] = got
                    self._advance()
            if not missing:
                return [f for f in found if f is not None]
        raise EvaluationLost(
            f"{len(missing)} of {len(tasks)} evaluations of {self.name} were lost {_TRIES} times ({reason}). No gradient was made "
            "without them."
        )

    def _submitted(self, executor: Executor, task: Arguments) -> Future[Any]:
        try:
            return executor.submit(answer, self.fn, *task)
        except BrokenExecutor as error:
            raise EvaluationLost(
                f"the executor of {self.name} is broken: {one_line(error)}. A worker died, and this kind of executor does not start "
                "another; make a new one, or use workers=N, which does."
            ) from error

    def _result(self, future: Future[Any]) -> tuple[Answer | Failure | None, str]:
        """The answer, or why there is none."""
        try:
            return future.result(self.timeout), ""
        except (FutureTimeout, TimeoutError):
            future.cancel()
            raise EvaluationLost(
                f"an evaluation of {self.name} did not return within {self.timeout:g} s (timeout=)."
            ) from None
        except BrokenExecutor as error:
            raise EvaluationLost(
                f"a worker died while it evaluated {self.name}, and with it the executor: {one_line(error)}. Use workers=N, which "
                "starts another worker and tries again."
            ) from error
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            if "pickle" in str(error).lower() or isinstance(error, pickle.PicklingError):
                raise ExternalError(
                    f"{self.name} cannot be sent to the executor: {one_line(error)}. Define it at the top level of a module, or use "
                    "workers=N, whose processes inherit it."
                ) from error
            return None, one_line(error)
        except CancelledError:
            return None, "the executor cancelled it"
        except Exception as error:  # KilledWorker and its like: every cluster has its own
            return None, one_line(error)

    @property
    def threaded(self) -> bool:
        return isinstance(self.executor, ThreadPoolExecutor)
