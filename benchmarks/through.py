"""Whether a Function gets the same findings, on the same lines, when it is checked through other code.

    python benchmarks/through.py FOLDER [--only PART] [--sample N --seed 17] [--level standard] [--jobs 2] [--json OUT] [--goal 0.95]
    python benchmarks/through.py --catalogue

Every .py file under FOLDER (except harm.py) that declares inputs for Functions is imported, in a process of its own. Each
Function is checked on its declared inputs by its class, and then through a lambda, through a partial, and inside a module
that first does something with its inputs. The same means: the same errors and warnings, by rule, function and line, and
none about the code around it. `--catalogue` takes the BAD and GOOD examples of the rules. With --goal the exit status is 1
if a smaller share of the ways is the same.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIMIT = 900.0  # seconds for one file: four checks of each Function
WAYS = ("lambda", "partial", "module")


@dataclass(frozen=True)
class Compared:
    """One Function through one way. `lost` and `new` are findings that only one of the two reports has."""

    file: str
    function: str
    way: str
    lost: list[str]
    new: list[str]
    seconds: float
    trouble: str = ""

    @property
    def same(self) -> bool:
        return not self.lost and not self.new and not self.trouble


def compare(path: Path, level: str) -> Iterator[Compared]:
    """Every declared Function of one file, each way. Runs the file: call it in a process of its own."""
    import torch

    import gradsmith as gs

    module = _imported(path)
    for name, builders in _declared(module):
        cls = _at(module, name)
        if not (isinstance(cls, type) and issubclass(cls, torch.autograd.Function)):
            continue
        for number, builder in enumerate(builders):
            told = f"{name}[{number}]" if number else name
            try:
                args, kwargs = _inputs(builder)
                direct = _told(gs.check(cls, *args, kwargs=kwargs, level=level))
            except Exception as error:  # whatever the file does: it is not what is measured here
                yield Compared(str(path), told, "direct", [], [], 0.0, f"{type(error).__name__}: {error}")
                continue
            for way in WAYS:
                args, kwargs = _inputs(builder)
                start = time.perf_counter()
                report = gs.check(_wrapped(cls, way), *_positional(cls, args, kwargs), level=level)
                got = _told(report)
                seconds = time.perf_counter() - start
                yield Compared(str(path), told, way, sorted(direct - got), sorted(got - direct), seconds)


def _wrapped(cls: Any, way: str) -> Callable[..., Any]:
    import torch
    from torch.utils import _pytree as pytree

    def prepared(value: Any) -> Any:
        return value * 1.0 if isinstance(value, torch.Tensor) and value.requires_grad else value

    class Prepared(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return cls.apply(*pytree.tree_map(prepared, args))

    if way == "lambda":
        return lambda *args: cls.apply(*args)
    return functools.partial(_applied, cls) if way == "partial" else Prepared()


def _applied(cls: Any, *args: Any) -> Any:
    return cls.apply(*args)


def _told(report: Any) -> set[str]:
    """The errors and warnings, each with its place."""
    serious = [f for f in report.findings if f.severity in ("error", "warning")]
    return {f"{f.severity} {f.rule} {f.function} line {f.line}" for f in serious}


def _imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"through_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def _declared(module: Any) -> Iterator[tuple[str, list[Any]]]:
    import torch

    from gradsmith.inputs.declared import declared

    names = dict.fromkeys(getattr(module, "gradsmith_inputs", {}))
    marked = [n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, torch.autograd.Function)]
    for name in dict.fromkeys((*names, *marked)):
        builders = declared(_at(module, name), module, name)
        if builders:
            yield name, list(builders)


def _at(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _inputs(builder: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    import torch

    from gradsmith.inputs.declared import built

    torch.manual_seed(0)
    return built(builder)


def _positional(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    from gradsmith.lab.subject.binding import positional
    from gradsmith.lab.subject.target import resolve

    return positional(resolve(cls), args, kwargs) if kwargs else args


def _in_process(path: Path, level: str) -> list[Compared]:
    with tempfile.TemporaryDirectory(prefix="gradsmith-through-") as cache:
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "GRADSMITH_CACHE_DIR": cache}
        command = [sys.executable, __file__, "--one", str(path), "--level", level]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return [Compared(str(path), "", "", [], [], LIMIT, f"no answer within {LIMIT:g} s")]
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"file"')]
    found = [Compared(**json.loads(line)) for line in lines]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        found.append(Compared(str(path), "", "", [], [], 0.0, f"exit status {done.returncode}: {last}"))
    return found


def _catalogue(folder: Path) -> None:
    from gradsmith.catalog import rules

    for rule in rules().values():
        for kind, source in (("bad", rule.bad), ("good", rule.good)):
            (folder / f"{rule.name.replace('-', '_')}_{kind}.py").write_text(source, encoding="utf-8")


def measure(folder: Path, only: str, level: str, jobs: int, sample: int, seed: int) -> list[Compared]:
    """All files in the order of their names, or so many of them in the order drawn."""
    files = [p for p in sorted(folder.rglob("*.py")) if p.name != "harm.py" and only in str(p.relative_to(folder))]
    files = random.Random(seed).sample(files, sample) if sample else files
    compared: list[Compared] = []
    with ThreadPoolExecutor(jobs) as pool:
        for number, found in enumerate(pool.map(lambda path: _in_process(path, level), files), 1):
            compared += found
            if number % 10 == 0:
                print(
                    f"[{number}/{len(files)}] {sum(one.same for one in compared)} of {len(compared)} the same",
                    flush=True,
                )
            for one in found:
                if not one.same:
                    said = one.trouble or f"lost {one.lost}, new {one.new}"
                    at = Path(one.file).relative_to(folder)
                    print(f"[{number}/{len(files)}] {at} {one.function} {one.way}: {said}", flush=True)
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--catalogue", action="store_true", help="the examples of the rules")
    parser.add_argument("--only", default="", help="part of a path, to take some of the files")
    parser.add_argument("--sample", type=int, default=0, help="so many files, drawn; default: all")
    parser.add_argument("--seed", type=int, default=17, help="of the sample")
    parser.add_argument("--level", default="standard")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--goal", type=float)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        for one in compare(options.one, options.level):
            print(json.dumps(asdict(one)), flush=True)
        return
    if options.catalogue:
        with tempfile.TemporaryDirectory(prefix="gradsmith-catalogue-") as folder:
            _catalogue(Path(folder))
            found = measure(Path(folder), options.only, options.level, options.jobs, options.sample, options.seed)
    elif options.folder is not None:
        found = measure(options.folder, options.only, options.level, options.jobs, options.sample, options.seed)
    else:
        parser.error("name a folder, or --catalogue")
    ways = [one for one in found if one.way in WAYS]
    for way in WAYS:
        mine = [one for one in ways if one.way == way]
        print(f"{way:<8} {sum(one.same for one in mine)} of {len(mine)} the same")
    share = sum(one.same for one in ways) / max(1, len(ways))
    print(f"all      {share:.1%}; {sum(one.way not in WAYS for one in found)} could not be compared")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8")
    if options.goal is not None and share < options.goal:
        sys.exit(1)


if __name__ == "__main__":
    main()
