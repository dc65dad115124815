"""Faulty subjects: each does its worst in import, forward or backward, beside right ones whose verdicts must not be lost."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fault_runs import Ground, Outcome, ground

# What is done, as statements. `{limit}`: within the limits of time and memory that the run sets.
DEEDS = {
    "exits": "os._exit(0)",
    "exits with a status": "os._exit(7)",
    "raises SystemExit": "raise SystemExit(3)",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "raises GeneratorExit": "raise GeneratorExit",
    "raises an exception that cannot be printed": "raise Unprintable()",
    "raises an exception of 10 MB": "raise ValueError('x' * 10_000_000)",
    "raises with escapes in its text": "raise ValueError('\\x1b[2J\\n::error::gone\\u202e')",
    "kills itself": "os.kill(os.getpid(), 9)",
    "aborts": "os.abort()",
    "reads address 0": "ctypes.string_at(0)",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "recurses without end": "deep()",
    "sleeps for ever": "time.sleep(10_000)",
    "computes for ever": "\n        while True: pass",
    "ignores every signal and sleeps": "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 15)]; time.sleep(10_000)",
    "kills its parent": "os.kill(os.getppid(), 9)",
    "stops its parent": "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(10_000)",
    "terminates its parent": "os.kill(os.getppid(), 15)",
    "kills its grandparent": "os.kill(above(os.getppid()), 9); time.sleep(10_000)",
    "stops its grandparent": "os.kill(above(os.getppid()), signal.SIGSTOP); os.kill(os.getppid(), 9); time.sleep(10_000)",
    "kills its own group": "os.killpg(0, 9)",
    "closes all descriptors": "os.closerange(0, 65536)",
    "closes all but the standard ones": "os.closerange(3, 65536)",
    "closes the standard ones": "os.closerange(0, 3)",
    "opens files until it may not": "hoard_files()",
    "makes pipes until it may not": "hoard_pipes()",
    "fills every pipe it has": "fill_pipes()",
    "writes JSON into every descriptor": 'write_everywhere(b\'{"worker_exit": 0, "imported": true}\\n\')',
    "writes 100 MB into every descriptor": "write_everywhere(b'x' * 100_000_000)",
    "prints 100 MB": "print('x' * 100_000_000)",
    "prints for ever": "\n        while True: print('flood')",
    "floods stderr for ever": "\n        while True: os.write(2, b'e' * 65536)",
    "writes a result of its own": "fake_result()",
    "floods the pipes in its run folder": "flood_pipes()",
    "fills the reply pipe with half a line": "flood_pipes(b'x' * 70_000, once=True)",
    "removes the run folder": "[shutil.rmtree(f, ignore_errors=True) for f in run_folders()]",
    "makes the run folder unwritable": "[os.chmod(f, 0o500) for f in run_folders()]",
    "forks, and both go on": "once(os.fork)",
    "forks a sleeper": "once(os.fork) == 0 and time.sleep(10_000)",
    "forks a daemon in a session of its own": "once(daemon)",
    "starts a process in a session of its own": "once(lambda: subprocess.Popen(['sleep', '10000'], start_new_session=True))",
    "starts a hundred sleepers": "once(lambda: [subprocess.Popen(['sleep', '10000']) for _ in range(100)])",
    "forks a tree of 63 processes": "fork_tree()",
    "starts three hundred sleepers": "once(lambda: [subprocess.Popen(['sleep', '10000']) for _ in range(300)]); time.sleep(10_000)",
    "starts a thread that never ends": "once(threading.Thread(target=time.sleep, args=(10_000,)).start)",
    "starts a thread that kills the process": "threading.Timer(0.2, lambda: os._exit(5)).start(); time.sleep(10_000)",
    "takes memory without end": "hoard = [bytearray(1 << 28) for _ in range(10_000)]",
    "takes memory in a child": "take_in_child()",
    "takes memory in many children": "take_in_children()",
    "takes memory in a daemon": "take_in_daemon()",
    "asks for a tensor of a petabyte": "torch.empty(1 << 48)",
    "changes the working folder": "os.chdir('/')",
    "empties the environment": "os.environ.clear()",
    "sets a file size limit of 0": "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "sets a limit of 3 open files": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "sets a processor limit": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1)); spin()",
    "sets a timer": "signal.setitimer(signal.ITIMER_REAL, 0.1); time.sleep(10_000)",
    "takes the umask": "os.umask(0o777)",
    "replaces sys.stdout": "sys.stdout = sys.stderr = None",
    "breaks json": "sys.modules['json'].dumps = None",
    "removes torch from sys.modules": "[sys.modules.pop(name) for name in list(sys.modules) if name.startswith('torch')]",
    "sets a trace function that raises": "sys.settrace(lambda *a: 1 / 0)",
    "sets a recursion limit of 50": "sys.setrecursionlimit(50)",
    "empties builtins": "vars(__import__('builtins')).pop('open')",
    "leaves temporary files": "[tempfile.mkdtemp() for _ in range(20)]; tempfile.mkstemp()",
    "leaves a folder that cannot be read": "os.chmod(tempfile.mkdtemp(), 0)",
    "registers an exit handler that hangs": "atexit.register(time.sleep, 10_000)",
    "frees memory that is in use": "x.untyped_storage().resize_(0)",
}
WHERE = ("import", "forward", "backward")
_LIMITS = {"seconds": 12.0, "gib": 1.5}
_TOOLS = """
import atexit, contextlib, ctypes, os, resource, shutil, signal, subprocess, sys, tempfile, threading, time
from pathlib import Path
import torch


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


def deep():
    return deep() + 1


def above(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def hoard_files():
    held = globals().setdefault("held", [])
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))


def hoard_pipes():
    held = globals().setdefault("held", [])
    with contextlib.suppress(OSError):
        while True:
            held.append(os.pipe())


def descriptors():
    return [int(name) for name in os.listdir("/proc/self/fd")]


def write_everywhere(data):
    for descriptor in descriptors():
        with contextlib.suppress(OSError):
            os.set_blocking(descriptor, False)
            for start in range(0, len(data), 65536):
                os.write(descriptor, data[start : start + 65536])


def fill_pipes():
    write_everywhere(b"x" * 1_000_000)


def run_folders():
    return [str(path) for path in Path(tempfile.gettempdir()).parents if path.parent.name.startswith("gradsmith-")]


def fake_result():
    for folder in run_folders():
        for name in ("result.json", "reply.json"):
            Path(folder, name).write_text('{"findings": [], "subjects": [], "skipped": []}')


def flood_pipes(data=b'{"worker_exit": 0}\\n', once=False):
    for folder in run_folders():
        for pipe in Path(folder).iterdir():
            if pipe.is_fifo():
                descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                until = time.monotonic() + (0.1 if once else 2)
                while time.monotonic() < until:
                    with contextlib.suppress(BlockingIOError):
                        os.write(descriptor, data)


def daemon(action=lambda: time.sleep(10_000)):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            action()
        os._exit(0)
    os.wait()


def take(size=3 << 30):
    held = bytearray(size)
    held[:: 4096] = b"x" * len(held[:: 4096])
    time.sleep(10_000)


def take_in_child():
    if os.fork() == 0:
        take()
    time.sleep(10_000)


def take_in_children():
    for _ in range(6):
        if os.fork() == 0:
            take(1 << 29)
    time.sleep(10_000)


def take_in_daemon():
    daemon(take)
    time.sleep(10_000)


def fork_tree(depth=5):
    for _ in range(2):
        if depth and os.fork() == 0:
            fork_tree(depth - 1)
    time.sleep(10_000)


def spin():
    while True:
        pass


done = []


def once(action):
    '''In one call of many: what forks in each of them grows without bound, and takes the machine down.'''
    if not done:
        done.append(True)
        return action()
"""
_CLASS = """

class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        {backward}
        return grad_output * x.cos()
"""
_INPUTS = """

def example():
    return (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {{name: example for name in {names!r}}}
"""


@dataclass(frozen=True)
class Fault:
    deed: str
    where: str

    @property
    def name(self) -> str:
        return f"{self.deed}, in {self.where}"


def cases() -> list[Fault]:
    """Every deed in forward, every second one in backward, and those that matter to whoever imports on import."""
    deeds = list(DEEDS)
    found = [Fault(deed, "forward") for deed in deeds]
    found += [Fault(deed, "backward") for deed in deeds[::2]]
    on_import = [deed for deed in deeds if "frees memory" not in deed]
    return found + [Fault(deed, "import") for deed in on_import[1::3]]


def tried(faults: list[Fault], jobs: int = 1) -> list[Outcome]:
    """Faults of forward and backward in one file, a right Function after each; faults of import in files of their own."""
    with ground() as place:
        asked = _written(place, faults)
        words = ["check", *asked, "--level", "quick", "--format", "json", "--jobs", str(jobs)]
        words += ["--timeout", str(_LIMITS["seconds"]), "--memory-limit", str(_LIMITS["gib"])]
        done = place.run(*words, seconds=1500)
        outcomes = [Outcome(fault.name, said=done.stderr[-500:]) for fault in faults]
        try:
            subjects = {s["name"]: s for s in json.loads(done.stdout)["subjects"]}
        except (ValueError, KeyError):
            for outcome in outcomes:
                outcome.trouble = f"no report (exit status {done.returncode}): {done.stderr.strip()[-200:]}"
            return [place.left(outcomes[0]), *outcomes[1:]]
        for number, outcome in enumerate(outcomes):
            faulty, right = subjects.get(f"Faulty{number}"), subjects.get(f"Right{number}")
            if faulty is None:
                outcome.trouble = "it has no verdict"
            if right is None or right["verdict"] != "verified":
                outcome.lost = 1
                outcome.said = str(right and right["reason"])
        place.left(outcomes[-1])
        return outcomes


def _written(place: Ground, faults: list[Fault]) -> list[str]:
    together, names, files = _TOOLS, [], []
    for number, fault in enumerate(faults):
        own, right, deed = f"Faulty{number}", f"Right{number}", DEEDS[fault.deed]
        done = {"forward": "pass", "backward": "pass"}
        after = _CLASS.format(name=right, **done)
        if fault.where == "import":
            # The right one stands in a file of its own, after it.
            at_import = deed.strip().replace("x.untyped", "torch.ones(1).untyped")
            text = _TOOLS + at_import + _CLASS.format(name=own, **done) + _INPUTS.format(names=[own])
            (place.files / f"import{number:03}.py").write_text(text)
            (place.files / f"import{number:03}_right.py").write_text(_TOOLS + after + _INPUTS.format(names=[right]))
            files += [f"import{number:03}.py", f"import{number:03}_right.py"]
            continue
        together += _CLASS.format(name=own, **{**done, fault.where: deed}) + after
        names += [own, right]
    if names:
        (place.files / "together.py").write_text(together + _INPUTS.format(names=names))
        files.insert(0, "together.py")
    return files
