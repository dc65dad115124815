"""Forwards that people wrote, drawn by seed from packages on the index: names, versions and hashes are kept, never their code.

A forward is self-contained if it is a module-level function without a class around it, takes at least one tensor by the look
of its names, calls torch, and uses nothing of its package but other such functions.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hashlib
import json
import random
import subprocess
import sys
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
# Added for the draw of seed 2506, so that it is not of packages alone on which fixes were made.
MORE = [
    "fvcore",
    "pytorchvideo",
    "geoopt",
    "torchdiffeq",
    "gpytorch",
    "linear-operator",
    "e3nn",
    "speechbrain",
    "asteroid",
    "julius",
    "kymatio",
    "lpips",
    "pytorch-msssim",
    "pyiqa",
    "roma",
    "pypose",
    "pytorch-kinematics",
    "nerfacc",
    "neuralforecast",
    "pytorch-forecasting",
    "torchrl",
    "captum",
    "torchattacks",
    "snntorch",
    "brevitas",
    "compressai",
    "tensorly-torch",
    "torch-harmonics",
    "neuraloperator",
    "torchani",
    "schnetpack",
    "transformers",
    "diffusers",
    "trl",
    "peft",
    "open-clip-torch",
    "fla-core",
    "ultralytics",
    "pytorch-optimizer",
    "opacus",
    "theseus-ai",
    "basicsr",
    "torchquad",
    "deepxde",
    "sbi",
    "nflows",
    "normflows",
    "botorch",
    "allennlp",
    "fastai",
    "espnet",
    "nemo-toolkit",
]
WANTED = 120


def harvest(
    folder: Path, seed: int, without: list[Path], more: bool, named: list[str] | None = None, wanted: int = WANTED
) -> None:
    """Draw from PACKAGES, with `more` from MORE, too, or from those `named`; what another folder's draw has is left out."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    packages = named or [*PACKAGES, *(MORE if more else ())]
    known = {item["hash"] for other in without for item in json.loads((other / "chosen.json").read_text("utf-8"))}
    for package in packages:
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
        found += in_wheel(wheel)
    found = [item for item in {item["hash"]: item for item in found}.values() if item["hash"] not in known]
    random.Random(seed).shuffle(found)
    per: Counter[str] = Counter()
    chosen = []
    for item in found:
        if per[item["package"]] < wanted // 6 and len(chosen) < wanted:
            per[item["package"]] += 1
            chosen.append(item)
    (folder / "chosen.json").write_text(json.dumps(chosen, indent=1), encoding="utf-8")
    print(
        f"{len(found)} self-contained forwards in {len(list(wheels.glob('*.whl')))} packages; {len(chosen)} drawn, {dict(per)}"
    )


def in_wheel(wheel: Path) -> list[dict[str, str]]:
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
