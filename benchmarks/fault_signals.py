"""INT, TERM and HUP, to the process or to its group, in every phase of a check: nothing is left, and what was found is printed."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import time
from dataclasses import dataclass
from itertools import product

from fault_runs import Ground, Outcome, ground

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What the second subject of a file does when its phase has come: it says so and sleeps.
_HERE = "open(os.environ['REACHED'], 'w').close(); time.sleep(600)"
PHASES = {
    "torch is imported": "",  # as soon as there is a second process
    "the file is imported": "",
    "forward": f"        if True: {_HERE}",
    "backward": "",
    "compile": f"        if type(x).__name__ == 'FakeTensor': {_HERE}",
    "explore": f"        if x.numel() != 12: {_HERE}",
    "with processes of its own": "        subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    f"        if os.fork() == 0: time.sleep(600)\n        {_HERE}",
}
_FILE = """
import os, subprocess, time, torch
{at_import}

class First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output


class Second(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
{in_forward}
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
{in_backward}
        return grad_output * x.cos()


def example():
    return (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {{"First": example, "Second": example}}
"""


@dataclass(frozen=True)
class Case:
    phase: str
    number: int
    to_group: bool
    on_terminal: bool = False
    jobs: int = 1

    @property
    def name(self) -> str:
        where = "group" if self.to_group else "process"
        more = (", on a terminal" if self.on_terminal else "") + (f", {self.jobs} jobs" if self.jobs > 1 else "")
        return f"{signal.Signals(self.number).name} to the {where} while {self.phase}{more}"


def cases() -> list[Case]:
    found = [Case(phase, number, to_group) for phase, number, to_group in product(PHASES, SIGNALS, (False, True))]
    found += [Case("forward", number, True, on_terminal=True) for number in SIGNALS]
    return [*found, *(Case("forward", number, False, jobs=2) for number in SIGNALS)]


def _source(phase: str) -> str:
    in_backward = f"        {_HERE}" if phase == "backward" else "        pass"
    at_import = _HERE if phase == "the file is imported" else ""
    return _FILE.format(at_import=at_import, in_forward=PHASES[phase] or "        pass", in_backward=in_backward)


def tried(case: Case) -> Outcome:
    outcome = Outcome(case.name)
    with ground() as place:
        (place.files / "subject.py").write_text(_source(case.phase))
        words = ["check", "subject.py", "--jobs", str(case.jobs)]
        if case.jobs > 1:
            (place.files / "other.py").write_text(_source(case.phase))
            words.insert(1, "other.py")
        _interrupted(place, case, words, outcome)
        return place.left(outcome)


def _interrupted(place: Ground, case: Case, words: list[str], outcome: Outcome) -> None:
    reached = place.folder / "reached"
    if case.on_terminal:
        ours, theirs = pty.openpty()
        before = termios.tcgetattr(theirs)
        process = place.start(*words, streams=theirs, REACHED=str(reached))
    else:
        process = place.start(*words, REACHED=str(reached))
    said = ""
    until = time.monotonic() + 240
    while not (len(place.marked()) > 1 if case.phase == "torch is imported" else reached.exists()):
        if process.poll() is not None or time.monotonic() > until:
            outcome.trouble = f"the phase was never reached (exit status {process.poll()})"
            place.end_all()
            return
        if case.on_terminal and select.select([ours], [], [], 0.05)[0]:
            said += os.read(ours, 65536).decode(errors="replace")
        elif not case.on_terminal:
            time.sleep(0.05)
    (os.killpg if case.to_group else os.kill)(process.pid, case.number)
    started = time.monotonic()
    if case.on_terminal:
        said += _drained(ours, process)
        outcome.trouble = "the terminal was left changed" if termios.tcgetattr(theirs) != before else ""
        if said.rfind("\x1b[?25l") > said.rfind("\x1b[?25h"):
            outcome.trouble = "the cursor was left hidden"
        os.close(ours)
        os.close(theirs)
    else:
        try:
            said = "".join(process.communicate(timeout=30))
        except Exception:
            outcome.trouble = "it did not stop"
            return
    outcome.said = said
    took = time.monotonic() - started
    if process.wait() != 128 + case.number:
        outcome.trouble = f"exit status {process.returncode}"
    elif "Traceback" in said:
        outcome.trouble = "a traceback"
    elif signal.Signals(case.number).name not in said:
        outcome.trouble = "the signal is not named"
    elif took > 15:
        outcome.trouble = f"it took {took:.0f} s to stop"
    found_before = case.phase not in ("torch is imported", "the file is imported") and case.jobs == 1
    if found_before and "wrong-gradient" not in said:
        outcome.lost = 1


def _drained(terminal: int, process: object) -> str:
    said = b""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            said += os.read(terminal, 65536)
        elif process.poll() is not None:  # type: ignore[attr-defined]
            break
    return said.decode(errors="replace")
