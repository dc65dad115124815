"""What `forks.py` starts: it imports torch and gradsmith, and then forks for every call that it is told of.

The parent never computes, so that a fork inherits no thread and no lock. Processes that gradsmith starts from a fork are
forked from it, too.
"""

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import torch  # noqa: F401

import gradsmith.checking.run  # noqa: F401
from gradsmith import catalog
from gradsmith.lab.process import zygote
from gradsmith.lab.triton.importing import interpret

sys.path[0] = ""
interpret()
zygote._warm_up(zygote._COMPILER)
catalog.rules()
answers = os.fdopen(os.dup(1), "w")
print("ready", file=answers, flush=True)
left = set()  # started, and nobody waits for them
while True:
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    asked = json.loads(line)
    left = {pid for pid in left if not os.waitpid(pid, os.WNOHANG)[0]}
    pid, until = os.fork(), time.monotonic() + asked["timeout"]
    if not pid:
        break
    if not asked["wait"]:
        left.add(pid)
        print(pid, file=answers, flush=True)
        continue
    ended, status = os.waitpid(pid, os.WNOHANG)
    while not ended:
        time.sleep(0.005)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        ended, status = os.waitpid(pid, os.WNOHANG)
    print(os.waitstatus_to_exitcode(status), file=answers, flush=True)
for number, (name, flags) in enumerate([("err", os.O_WRONLY), ("out", os.O_WRONLY), ("in", os.O_RDONLY)]):
    os.dup2(os.open(os.path.join(asked["folder"], name), flags), 2 - number)
answers.close()
if not asked["wait"]:
    os.setsid()
REAL = subprocess.Popen


class Forked(REAL):
    """A process of gradsmith's own is forked from here, where all is imported already; any other is started."""

    def __init__(self, args, **how):
        self.own = (
            isinstance(args, list) and args[:2] == [sys.executable, "-m"] and args[2].startswith("gradsmith.lab.")
        )
        self.session = how.get("start_new_session", False)
        super().__init__(args, **how)

    def _execute_child(self, args, *rest):
        if not self.own:
            return super()._execute_child(args, *rest)
        cwd, env = rest[4:6]
        theirs = rest[9], rest[12], rest[14]  # of the pipes, the ends of the child
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid:
            self._child_created = True
            return self._close_pipe_fds(*rest[9:15])
        if self.session:
            os.setsid()
        for number, descriptor in enumerate(theirs):
            if descriptor != -1:
                os.dup2(descriptor, number)
        os.closerange(3, 1024)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        return run(["-m", *args[2:]], cwd or os.getcwd(), os.environ if env is None else env)  # it does not come back


subprocess.Popen = Forked


def run(words, cwd, env):
    """Do it, and end as Python does; but what is imported is not taken down piece by piece, which takes half a second."""
    status = 1
    try:
        start(words, cwd, dict(env))
        status = 0
    except SystemExit as left:
        status = left.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        status = -signal.SIGINT
    except BaseException:
        sys.excepthook(*sys.exc_info())
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def start(words, cwd, env):
    sys.stdin = os.fdopen(0, "r", closefd=False)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    tempfile.tempdir = None
    warnings.filterwarnings("ignore", module="runpy")  # that it is imported already
    if "multiprocessing.process" in sys.modules:  # it was imported elsewhere, and looks for a script there
        sys.modules["multiprocessing.process"].ORIGINAL_DIR = os.getcwd()
    sys.path[1:1] = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and p not in sys.path]
    kind, *words = words
    if kind == "-m":
        sys.argv, sys.path[0] = words, os.getcwd()
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv, sys.path[0] = [kind, *words], os.path.dirname(os.path.abspath(kind))
        runpy.run_path(kind, run_name="__main__")


run(asked["words"], asked["cwd"], asked["env"])
