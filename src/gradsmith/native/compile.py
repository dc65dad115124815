"""Compile emitted C with the compiler of this machine and load it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
from pathlib import Path

import torch

from gradsmith.lab.process.time_limit import finished

from .cache import fetch
from .refused import Refused

# Values stay those of IEEE arithmetic: no -ffast-math. errno and traps only keep loops from being vectorised.
FLAGS = (
    "-O2", "-ftree-vectorize", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
    "-fvect-cost-model=dynamic", "-shared", "-fPIC", "-w",
)  # fmt: skip
_SECONDS = 60.0  # of CPU time: on a busy machine a compiler waits, too


def compiler() -> str:
    """The C compiler of this machine: $CC, else cc, gcc or clang."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise Refused("this machine has no C compiler (looked for $CC, cc, gcc and clang)")


def load(source: str) -> ctypes.CDLL:
    """Compile `source`, or take it from the cache, and load it."""
    path, flags = compiler(), _flags()
    key = hashlib.sha256("\0".join((source, *toolchain())).encode()).hexdigest()[:40]
    library = fetch(key, lambda target: _compile(source, target, path, flags))
    try:
        return ctypes.CDLL(str(library))
    except OSError:
        library.unlink(missing_ok=True)  # it has the right digest and is not a library: made once more
    try:
        return ctypes.CDLL(str(fetch(key, lambda target: _compile(source, target, path, flags))))
    except OSError as error:
        raise Refused(f"the compiled C could not be loaded ({error})") from error


def _flags() -> tuple[str, ...]:
    native = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    return (*FLAGS, native)


def toolchain() -> tuple[str, ...]:
    """All that compiled C depends on besides its source."""
    path = compiler()
    binary = os.stat(os.path.realpath(path))
    version = (str(binary.st_mtime_ns), str(binary.st_size), str(torch.__version__))
    return (path, *version, " ".join(_flags()), cpu_features())


@functools.cache
def cpu_features() -> str:
    """What -march=native depends on: a cache on a network drive is shared by unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = [line for line in lines if line.startswith(("flags", "Features", "model name", "CPU part"))]
    # Where there is no such file, platform asks `uname -p`: a fork, which took up to 105 ms of a process that has torch.
    return "\n".join([platform.machine(), *(sorted(set(wanted)) or [platform.processor()])])


def _compile(source: str, target: Path, path: str, flags: tuple[str, ...]) -> None:
    command = [path, *flags, "-x", "c", "-", "-o", str(target), "-lm"]
    try:
        done = finished(command, _SECONDS, given=source)
    except OSError as error:
        raise Refused(f"{path} failed: {error}") from error
    if done.returncode != 0:
        first = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise Refused(f"{Path(path).name} rejects the emitted C: {first[:160]}")
