"""A command of gradsmith's own may compute for so long; how long it waits for a processor does not count."""

from __future__ import annotations

import os
import sys

import pytest

from gradsmith.lab.process import tree
from gradsmith.lab.process.time_limit import finished

ENDLESS = "import os, sys; print(os.fork() and os.getpid(), flush=True)\nwhile True: pass"


@pytest.fixture(autouse=True, params=["told of the end", "asking for it"])
def way_to_wait(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux tells when a process has ended; elsewhere it is asked."""
    if request.param == "asking for it":
        monkeypatch.delattr(os, "pidfd_open", raising=False)


def test_what_it_says_and_its_status_come_back() -> None:
    done = finished([sys.executable, "-c", "import sys; print(input()); sys.exit('no')"], 60, given="yes\n")
    assert (done.returncode, done.stdout, done.stderr) == (1, "yes\n", "no\n")


def test_what_computes_on_is_ended_with_all_that_it_started() -> None:
    with pytest.raises(TimeoutError, match=r"did not finish within 0\.5 s of CPU time"):
        finished([sys.executable, "-c", ENDLESS], 0.5)
    assert not [pid for pid in tree.below(os.getpid()) if ENDLESS in _words(pid)]


def _words(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
