"""Empty libraries in the place of CUDA's: what a wheel of torch for GPUs needs to be loaded where there is none.

    PYTHON tools/without_cuda.py     in the environment of torch

Such a wheel names a dozen libraries of NVIDIA (2 to 4 GB) that must be there to load it, and that nothing calls on a CPU. In place of
each that is missing this writes one into `torch/lib` that has the same names. Every function in it does nothing and
returns 100, which is "there is no device" (cudaErrorNoDevice).
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_FILE, _NAME = re.compile(r"Version: \d+ +File: (\S+)"), re.compile(r"Name: (\S+) +Flags")
_NO_DEVICE = 100


def loaded_with_torch() -> list[Path]:
    """What `import torch` loads of the torch that is installed here, which need not be importable yet."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None, "no torch is installed here"
    folder = Path(found.origin).parent / "lib"
    reached, waiting = set[Path](), [folder / "libtorch_global_deps.so", folder / "libtorch_python.so"]
    while waiting:
        library = waiting.pop()
        if library.exists() and library not in reached:
            reached.add(library)
            waiting += [folder / name for name in _NEEDED.findall(_read("-d", library))]
    return sorted(reached)


def missing(libraries: list[Path]) -> dict[str, set[str]]:
    """By library that these need and this system has not: the names that they look for in it."""
    own = {library.name for library in libraries}
    absent = {name for library in libraries for name in _NEEDED.findall(_read("-d", library)) if name not in own}
    absent = {name for name in absent if not _loads(name)}
    wanted: dict[str, set[str]] = {name: set() for name in absent}
    defined, unclear = set[str](), set[str]()
    for library in libraries:
        comes_from = dict(_versions(library))
        for line in _read("--dyn-syms", library).splitlines():
            words = line.split()
            if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK"):
                continue
            name, _, version = words[7].partition("@")
            if words[6] != "UND":
                defined.add(name)
            elif comes_from.get(version) in wanted:
                wanted[comes_from[version]].add(f"{name}@{version}")
            elif not version and words[4] == "GLOBAL":
                unclear.add(name)
    for name in unclear - defined if wanted else ():  # without a version any library will do, if only one has it
        wanted[min(wanted)].add(name)
    return wanted


def _versions(library: Path) -> Iterator[tuple[str, str]]:
    """(version, library that has it), as this one states it."""
    file = ""
    for line in _read("-V", library).splitlines():
        if stated := _FILE.search(line):
            file = stated[1]
        elif file and (version := _NAME.search(line)):
            yield version[1], file


def write(name: str, wanted: set[str], folder: Path) -> None:
    """A library of this name in which every wanted function returns "no device"."""
    versions = defaultdict[str, list[str]](list)
    for symbol in sorted(wanted):
        plain, _, version = symbol.partition("@")
        versions[version].append(plain)
    names = sorted({plain for plains in versions.values() for plain in plains})
    lines = [".text", *(f".globl {plain}\n.type {plain}, @function\n{plain}:" for plain in names)]
    lines += [f"mov ${_NO_DEVICE}, %eax", "ret", '.section .note.GNU-stack,"",@progbits']
    bound = [
        f"{version} {{ global: {' '.join(f'{plain};' for plain in plains)} }};"
        for version, plains in versions.items()
        if version
    ]
    with tempfile.TemporaryDirectory() as made:
        source, script = Path(made, "empty.s"), Path(made, "versions")
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        script.write_text("\n".join(bound), encoding="utf-8")
        call = ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", str(folder / name), str(source)]
        subprocess.run([*call, *([f"-Wl,--version-script={script}"] if bound else [])], check=True)


def _read(what: str, library: Path) -> str:
    return subprocess.run(["readelf", "-W", what, str(library)], capture_output=True, text=True, check=True).stdout


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def main() -> int:
    libraries = loaded_with_torch()
    found = missing(libraries)
    for name, wanted in sorted(found.items()):
        write(name, wanted, libraries[0].parent)
    print(f"{len(found)} empty libraries: {', '.join(sorted(found))}" if found else "nothing is missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
