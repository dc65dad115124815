"""Zygotes that outlive a check: importing torch takes seconds, and is not what the tests of `gs.check_paths` are about.

Every subject still runs in a process of its own, forked for it. Tests about zygotes themselves start their own, and
so does the command line in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from forks import FORKS

from gradsmith.checking import isolated, jobs, paths
from gradsmith.checking.isolated import WORKER
from gradsmith.checking.jobs import Running
from gradsmith.lab.process.isolation import Limits, Zygote

Surroundings = tuple[Any, ...]


class Forked(Zygote):
    """It starts with torch imported, whatever folder and environment it is for."""

    def _started(self, command: list[str], surroundings: dict[str, str]) -> Any:
        return FORKS.start(*command[1:], env=surroundings)


class Keeping:
    """Lends zygotes that were started in the same surroundings (folder, environment), and starts one where none is idle."""

    def __init__(self) -> None:
        self.idle: list[tuple[Surroundings, Zygote]] = []
        self.lock = threading.Lock()
        # A zygote ends with the thread that started it (Linux counts threads as parents), so one thread starts them all.
        self.starter = ThreadPoolExecutor(1)

    @contextlib.contextmanager
    def lent(self, how: Running) -> Iterator[Zygote]:
        around = _surroundings()
        with self.lock:
            self.idle = [kept for kept in self.idle if _is_there(kept[1])]
            found = next((kept for kept in self.idle if kept[0] == around), None)
            if found is not None:
                self.idle.remove(found)
        zygote = found[1] if found else self.starter.submit(Forked(Limits(), WORKER, warm=True).__enter__).result()
        zygote.limits = Limits(how.seconds, how.bytes)
        try:
            yield zygote
        except BaseException:  # in the middle of a conversation
            zygote.__exit__()
            raise
        with self.lock:
            self.idle.append((around, zygote))

    def end(self) -> None:
        for _, zygote in self.idle:
            zygote.__exit__()
        self.starter.shutdown()


def _is_there(zygote: Zygote) -> bool:
    """A command that ran in this process has ended what was started under it."""
    alive = zygote.process is not None and zygote.process.poll() is None
    return alive and zygote.folder is not None and zygote.folder.is_dir()


def _surroundings() -> Surroundings:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return (os.getcwd(), sorted(environment.items()))


@pytest.fixture(scope="session", autouse=True)
def _kept_zygotes(_own_cache: None) -> Iterator[None]:
    keeping = Keeping()
    with pytest.MonkeyPatch.context() as patch:
        for module in (jobs, paths):
            patch.setattr(module, "started", keeping.lent)
        patch.setattr(isolated, "new_zygote", lambda limits, worker: keeping.lent(Running()))
        yield
    keeping.end()
