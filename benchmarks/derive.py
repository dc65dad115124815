"""How many forwards that people wrote can be derived, and is any derivation wrong?

Run: python benchmarks/derive.py harvest FOLDER [--seed 0]     downloads packages into FOLDER, draws 120 forwards, keeps names and hashes
     python benchmarks/derive.py run FOLDER [--check]           derives each; --check also runs gs.check on what was derived
     python benchmarks/derive.py formulas                       40 formulas through `gradsmith new`

A forward is self-contained if it is a module-level function without a class around it, takes at least one tensor by the look
of its names, calls torch, and uses nothing of its package but other such functions. The code is never copied here: the list
keeps package, version, file, name and a hash.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib.util
import io
import json
import random
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

PACKAGES = [
    "kornia",
    "torchvision",
    "segmentation-models-pytorch",
    "monai",
    "pytorch-metric-learning",
    "torch-geometric",
    "asteroid-filterbanks",
    "torchmetrics",
    "pytorch3d",
    "timm",
    "x-transformers",
    "lightly",
    "piq",
    "torchaudio",
    "ddsp-pytorch",
    "auraloss",
    "local-attention",
    "rotary-embedding-torch",
    "vector-quantize-pytorch",
    "denoising-diffusion-pytorch",
    "entmax",
    "kornia-moons",
    "torchgeometry",
    "adabelief-pytorch",
]
WANTED = 120
FORMULAS = [
    "x * sigmoid(beta * x)",
    "x * tanh(softplus(x))",
    "exp(-x * x)",
    "log(1 + exp(x))",
    "sqrt(1 + x * x) - 1",
    "x / (1 + abs(x))",
    "a * sin(b * x)",
    "(x - y) ** 2",
    "abs(x - y)",
    "log(cosh(x - y))",
    "x * y + z",
    "x / sqrt(x * x + y * y)",
    "atan2(x, y)",
    "tanh(a * x + b)",
    "relu(x) ** 2",
    "0.5 * x * (1 + erf(x / sqrt(2)))",
    "exp(-abs(x - y) / s)",
    "x ** 3 - 3 * x",
    "sigmoid(x) * sigmoid(y)",
    "softmax(x, -1) * y",
    "log_softmax(x, -1)",
    "(x * y).sum(-1)",
    "x.mean(-1, keepdim=True) * y",
    "x @ y.mT",
    "logsumexp(x, -1)",
    "where(x > 0, x, a * x)",
    "clamp(x, -1, 1) * y",
    "maximum(x, y)",
    "minimum(x, y) * z",
    "sin(x) / x",
    "cos(2 * pi * x)",
    "x * exp(-x)",
    "1 / (1 + exp(-k * (x - m)))",
    "log(x) * y",
    "sqrt(x) + y",
    "x ** y",
    "elu(x) + 1",
    "silu(x) * y",
    "erf(x) * y",
    "x * rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w",
]


# ---- harvesting


def harvest(folder: Path, seed: int) -> None:
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not any(wheels.glob(package.replace("-", "_") + "-*")):
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "-d",
                    str(wheels),
                    package,
                ],
                timeout=90,
                check=False,
                capture_output=True,
            )
    found = []
    for wheel in sorted(wheels.glob("*.whl")):
        found += _in_wheel(wheel)
    random.Random(seed).shuffle(found)
    per: Counter[str] = Counter()
    chosen = []
    for item in found:
        if per[item["package"]] < WANTED // 6 and len(chosen) < WANTED:
            per[item["package"]] += 1
            chosen.append(item)
    (folder / "chosen.json").write_text(json.dumps(chosen, indent=1), encoding="utf-8")
    print(
        f"{len(found)} self-contained forwards in {len(list(wheels.glob('*.whl')))} packages; {len(chosen)} drawn, {dict(per)}"
    )


def _in_wheel(wheel: Path) -> list[dict[str, str]]:
    package, version = wheel.name.split("-")[:2]
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".py") and "test" not in name:
                text = archive.read(name).decode("utf-8", "replace")
                with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                    found += [dict(package=package, version=version, file=name, **item) for item in _forwards(text)]
    return found


def _forwards(text: str) -> list[dict[str, str]]:
    """Module-level functions that use only torch, math, builtins and each other, with all they need, as one source."""
    tree = ast.parse(text)
    own = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    imports = {
        a.asname or a.name.split(".")[0]: node
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for a in node.names
    }
    found = []
    for name, node in own.items():
        closure = _closure(node, own, imports)
        if closure is None or not _looks_like_a_forward(node):
            continue
        names, used = closure
        head = [ast.unparse(imports[i]) for i in sorted(used)]
        body = [ast.unparse(_bare(own[n])) for n in names]
        source = (
            "from __future__ import annotations\n"
            + "\n".join(dict.fromkeys(head))
            + "\n\n"
            + "\n\n\n".join(body)
            + "\n"
        )
        found.append({"name": name, "hash": hashlib.sha256(source.encode()).hexdigest()[:16]})
        SOURCES[found[-1]["hash"]] = source
    return found


SOURCES: dict[str, str] = {}
_FREE = {
    "torch",
    "math",
    "F",
    "nn",
    "Tensor",
    "np",
    "numpy",
    "typing",
    "Optional",
    "Tuple",
    "List",
    "Union",
    "Callable",
    "Any",
}


def _bare(node: ast.FunctionDef) -> ast.FunctionDef:
    node.decorator_list = []
    return node


def _closure(node: ast.FunctionDef, own: dict[str, Any], imports: dict[str, Any]) -> tuple[list[str], set[str]] | None:
    import builtins

    names, used, todo = [], set(), [node.name]
    while todo:
        current = todo.pop()
        if current in names:
            continue
        names.append(current)
        function = own[current]
        if any("jit" not in ast.unparse(d) for d in function.decorator_list):
            return None
        local = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        local |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for inner in (n for part in function.body for n in ast.walk(part)):
            if not isinstance(inner, ast.Name) or inner.id in local or hasattr(builtins, inner.id):
                continue
            if inner.id in own:
                todo.append(inner.id)
            elif inner.id in imports and _is_torch(imports[inner.id]):
                used.add(inner.id)
            else:
                return None
    return list(reversed(names)), used


def _is_torch(node: Any) -> bool:
    modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return (
        all(m.split(".")[0] in ("torch", "math", "typing", "__future__") for m in modules)
        and getattr(node, "level", 0) == 0
    )


def _looks_like_a_forward(node: ast.FunctionDef) -> bool:
    """Takes tensors (so its annotations or names say), returns a value, and does arithmetic with torch."""
    text = ast.unparse(node)
    arguments = node.args.args
    if (
        not arguments
        or arguments[0].arg in ("self", "cls", "module", "model", "path", "m")
        or node.args.vararg
        or node.args.kwarg
    ):
        return False
    annotated = [ast.unparse(a.annotation) for a in arguments if a.annotation is not None]
    tensors = any("Tensor" in a for a in annotated) or (not annotated and len(arguments) <= 6)
    strange = (
        "Module",
        "state_dict",
        "isinstance(",
        "open(",
        "distributed",
        "optimizer",
        "assert_",
        "print(",
        "warnings.",
        "dict",
    )
    operations = (
        text.count("torch.") + text.count("F.") + sum(text.count(c) for c in (" * ", " @ ", " / ", ".sum(", ".mean("))
    )
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
    return tensors and returns and operations >= 3 and not any(s in text for s in strange) and len(text) < 4000


# ---- running


def run(folder: Path, *, check: bool, skip: int = 0) -> None:
    from gradsmith.deriving.deriving import derived
    from gradsmith.deriving.refusal import Refused
    from gradsmith.writing.derive import _supplied, written

    for wheel in sorted((folder / "wheels").glob("*.whl")):
        _in_wheel(wheel)
    results = []
    for item in json.loads((folder / "chosen.json").read_text(encoding="utf-8"))[skip:]:
        start = time.time()
        line: dict[str, Any] = dict(item)
        try:
            fn = _loaded(folder, item)
            with _limited(60), contextlib.redirect_stdout(io.StringIO()):
                args, kwargs = _supplied(fn)
                made = written(fn, args, kwargs).derivation if check else derived(fn, args, kwargs)
            backward = made.source.split("def backward", 1)[1].split("\ndef ", 1)[0]
            line |= {"outcome": "derived", "lines": len(backward.strip().splitlines()) - 1, "saved": made.plan.nbytes}
            (folder / "derived").mkdir(exist_ok=True)
            (folder / "derived" / f"{item['hash']}.py").write_text(made.source, encoding="utf-8")
        except Refused as refusal:
            line |= {"outcome": "refused", "why": str(refusal)[:300]}
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome = "no inputs" if "no inputs" in str(error) or "gradsmith_inputs" in str(error) else "crash"
            line |= {"outcome": outcome, "why": f"{type(error).__name__}: {error}"[:300]}
        line["seconds"] = round(time.time() - start, 1)
        results.append(line)
        print(
            f"{line['outcome']:10} {item['package']:28} {item['name']:38} {line['seconds']:5}s {line.get('why', '')[:150]}",
            flush=True,
        )
        (folder / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    counts = Counter(r["outcome"] for r in results)
    lines = sorted(r["lines"] for r in results if "lines" in r)
    print(dict(counts), "median lines of backward:", lines[len(lines) // 2] if lines else "-")


class _limited:
    """A forward that hangs is a result, too."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def stop(*_: Any) -> None:
            raise TimeoutError(f"took longer than {self.seconds} s")

        signal.signal(signal.SIGALRM, stop)
        signal.alarm(self.seconds)

    def __exit__(self, *_: Any) -> None:
        signal.alarm(0)


def _loaded(folder: Path, item: dict[str, str]) -> Any:
    path = folder / "sources" / f"m_{item['hash']}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(SOURCES[item["hash"]], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, item["name"])


def formulas() -> None:
    from gradsmith.writing.new import new

    good = 0
    for i, text in enumerate(FORMULAS):
        try:
            new(f"formula_{i}", text=text)
            good += 1
        except Exception as error:
            print(f"{text}: {error}")
    print(f"{good} of {len(FORMULAS)} formulas verified")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__ or ""), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["harvest", "run", "formulas"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first N, which an earlier run has judged")
    given = parser.parse_args()
    if given.what == "formulas":
        formulas()
    elif given.what == "harvest":
        harvest(given.folder, given.seed)
    else:
        run(given.folder, check=given.check, skip=given.skip)


if __name__ == "__main__":
    main()
