"""Writes src/gradsmith/source/torch_ops.py: what the operations of this PyTorch do, as lists of names.

Run: python tools/torch_ops.py          (with the torch of constraints.txt; needs nothing else)

Read are the schemas of all operators (aliases, returns), their tags (random, reduction, pointwise), derivatives.yaml as
torchgen ships it (what has no derivative, a zero one, what it keeps for backward), and torch itself (which of them are
methods of tensors; the dtype of the result on a small example). An operation is known by the name it is called by:
`torch.linalg.inv` and the operator `linalg_inv` are both `inv`.
"""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
import torchgen
from torch import Tensor

PLACE = Path(__file__).resolve().parent.parent / "src" / "gradsmith" / "source" / "torch_ops.py"
MODULES = ("linalg_", "special_", "fft_")
VENDORS = ("cudnn_", "miopen_", "mkldnn_", "fbgemm_", "quantized_", "mps_", "sparse_", "batch_norm_")
MEANINGS = {
    "OPERATIONS": "Every operation of native_functions.yaml that gives back a tensor, and every function of torch.nn.functional.",
    "IN_TORCH": "Operations that are functions of torch itself; the others are in torch.nn.functional, torch.linalg, ...",
    "METHODS": "What tensors have as a method, their in-place variants among them.",
    "NEEDS_ARGUMENT": "Methods that cannot be called without an argument: `x.take()` is no tensor's.",
    "ALIASES": "The result shares memory with an operand; for some of them only where nothing has to be done.",
    "RANDOM": "Draws from the generator.",
    "CREATION": "Makes a tensor out of sizes and numbers, or of the size of another.",
    "REDUCTIONS": "Fewer elements than before.",
    "POINTWISE": "Element by element.",
    "SEVERAL": "Gives back several tensors, whatever the arguments.",
    "SOMETIMES_SEVERAL": "Gives back several tensors for some arguments (`max` with a dimension).",
    "STEPS": "Constant wherever it has a derivative.",
    "CORNERS": "Continuous, and its slope jumps somewhere.",
    "INTEGERS": "Gives back integers for floating numbers.",
    "BOOLS": "Gives back bools for floating numbers.",
    "UNDIFFERENTIABLE": "No output has a derivative.",
    "SAVES_NOTHING": "Differentiable, and keeps no tensor for backward.",
    "SAVES": "Keeps a tensor for backward.",
}


def packaged(path: str) -> str:
    return (Path(torchgen.__file__).parent / "packaged" / path).read_text(encoding="utf-8")


def schemas() -> Iterator[Any]:
    """Of the operators that somebody may call: TorchScript has more in the same namespace."""
    native = set(re.findall(r"^- func: (\w+)[.(]", packaged("ATen/native/native_functions.yaml"), re.M))
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, operator = schema.name.partition("::")
        hidden = (
            operator.startswith("_") or operator.endswith(("_backward", "_forward")) or operator.startswith(VENDORS)
        )
        if namespace == "aten" and operator in native and not hidden:
            yield schema


def called(operator: str) -> set[str]:
    """The name that an operator goes by in Python: `linalg_inv` is torch.linalg.inv."""
    return {next((operator.removeprefix(m) for m in MODULES if operator.startswith(m)), operator)}


def derivatives() -> dict[str, list[str]]:
    """Operator -> its formulas in derivatives.yaml, and what is said of its outputs."""
    found: dict[str, list[str]] = defaultdict(list)
    for block in re.split(r"^- name: ", packaged("autograd/derivatives.yaml"), flags=re.M)[1:]:
        head, _, body = block.partition("\n")
        pairs = (line.strip().partition(": ") for line in body.splitlines() if re.match(r"\s+[\w, ]+: ", line))
        formulas = [formula for argument, _, formula in pairs if argument not in ("result", "dispatch")]
        found[re.split(r"[.(]", head)[0]] += formulas
    return dict(found)


def tagged(packet: Any) -> set[str]:
    return {tag.name for name in packet.overloads() for tag in getattr(packet, name).tags}


def functions(name: str) -> Iterator[Any]:
    for place in (torch, torch.nn.functional, torch.special, torch.linalg, torch.Tensor):
        if callable(function := getattr(place, name, None)):
            yield function


def operands(x: Tensor) -> Iterator[tuple[Any, ...]]:
    """What most operations can be called with."""
    half = torch.full_like(x, 0.5).requires_grad_(x.requires_grad)
    return iter(((x,), (x, half), (x, 0.5)))


def answer(name: str, x: Tensor) -> tuple[Any, tuple[Any, ...]] | None:
    """The first call that works, and its operands."""
    for function in functions(name):
        for given in operands(x):
            try:
                torch.manual_seed(0)
                return function(*given), given
            except Exception:  # it wants something else
                continue
    return None


def result_kind(name: str) -> str:
    """What kind of numbers come back for floating ones."""
    found = answer(name, torch.tensor([[0.25, 0.5], [0.75, 0.3]]))
    if found is None or not isinstance(found[0], Tensor):
        return ""
    result = found[0]
    if result.dtype == torch.bool:
        return "bool"
    return "" if result.is_floating_point() or result.is_complex() else "integer"


def values(name: str, x: Tensor) -> Tensor | None:
    found = answer(name, x)
    result = found[0] if found is not None else None
    if not isinstance(result, Tensor) or result.layout != torch.strided or not result.is_floating_point():
        return None
    return result.double() if result.shape == x.shape else None


def is_step(name: str) -> bool:
    """The same at points close to each other, and not the same everywhere."""
    x = torch.linspace(-3.97, 4.03, 64, dtype=torch.float64)
    here, there = values(name, x), values(name, x + 1e-6)
    return here is not None and there is not None and torch.equal(here, there) and here.unique().numel() > 1


def has_corner(name: str) -> bool:
    """No jump, and slopes that differ on the two sides of a point; round numbers are where they are."""
    at = torch.arange(-12, 13, dtype=torch.float64) / 2
    left, here, right = (values(name, at + h) for h in (-1e-4, 0.0, 1e-4))
    if left is None or here is None or right is None:
        return False
    finite = left.isfinite() & here.isfinite() & right.isfinite()
    smooth = (right - left).abs() < 1e-2
    bent = (right - 2 * here + left).abs() / 1e-4 > 0.05
    return bool((finite & smooth & bent).any()) and bool(smooth[finite].all())


def saves(name: str) -> bool | None:
    """Whether autograd keeps a tensor; None where nothing can be recorded on a small square matrix."""
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        # A copy: operations that write into their operand must not write into a leaf.
        start = torch.tensor([[2.0, 0.5], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
        found = answer(name, start.clone())
    results = found[0] if found is not None else None
    several = results if isinstance(results, (tuple, list)) else [results]
    if not any(isinstance(r, Tensor) and r.grad_fn is not None for r in several):
        return None
    return bool(kept)


def table() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in MEANINGS}
    one: set[str] = set()
    for schema in schemas():
        operator = schema.name.removeprefix("aten::")
        returned = [str(r.type) for r in schema.returns if "Tensor" in str(r.type)]
        if not returned or any(a.is_out for a in schema.arguments):
            continue
        names = called(operator.rstrip("_"))
        found["OPERATIONS"] |= names
        if any(a.alias_info and not a.alias_info.is_write for a in schema.arguments):
            found["ALIASES"] |= names
        tags = tagged(getattr(torch.ops.aten, operator))
        for tag, place in (
            ("nondeterministic_seeded", "RANDOM"),
            ("reduction", "REDUCTIONS"),
            ("pointwise", "POINTWISE"),
        ):
            if tag in tags:
                found[place] |= names
        several = len(returned) > 1 or returned[0].startswith("List")
        (found["SOMETIMES_SEVERAL"] if several else one).update(names)
        given = any("Tensor" in str(a.type) for a in schema.arguments)
        if not given or operator.startswith("new_") or operator.endswith("_like"):
            found["CREATION"] |= names
    kinds = (FunctionType, BuiltinFunctionType)
    functional = {n for n, f in vars(torch.nn.functional).items() if isinstance(f, kinds) and n.strip("_") == n}
    public = {
        n for n in functional if "torch_function" not in n and n not in ("boolean_dispatch", "assert_int_or_pair")
    }
    found["OPERATIONS"] |= public
    # torch.nn.functional gives back one tensor where the operator gives several (embedding_bag, max_pool1d).
    found["SEVERAL"] = found["SOMETIMES_SEVERAL"] - one - public
    found["SOMETIMES_SEVERAL"] -= found["SEVERAL"] | public
    found["CREATION"] -= found["RANDOM"]
    for operator, formulas in derivatives().items():
        outputs = [f for f in formulas if re.fullmatch(r"\[(True|False|, )+\]", f)]
        slopes = [f for f in formulas if f not in outputs]
        # A variant of `view` for other dtypes has no derivative; view itself has one.
        if all(f == "non_differentiable" for f in slopes) and (slopes or any("True" not in f for f in outputs)):
            found["UNDIFFERENTIABLE"] |= called(operator) & found["OPERATIONS"]
    found["IN_TORCH"] = {n for n in found["OPERATIONS"] if callable(getattr(torch, n, None))}
    found["METHODS"] = {n for n in dir(torch.Tensor) if n[0] != "_" and callable(getattr(torch.Tensor, n))}
    found["NEEDS_ARGUMENT"] = {n for n in found["METHODS"] if _needs_argument(n)}
    for name in found["OPERATIONS"] - found["CREATION"]:
        _ask(name, found)
    return found


def _needs_argument(method: str) -> bool:
    """Whether no schema of the operator lets a tensor call it alone."""
    operator = next((p + method for p in ("", *MODULES) if hasattr(torch.ops.aten, p + method)), None)
    if operator is None:
        return False
    packet = getattr(torch.ops.aten, operator)
    schemas = [getattr(packet, name)._schema for name in packet.overloads() if "out" not in name]
    required = [[a for a in s.arguments if not a.has_default_value() and a.name != "self"] for s in schemas]
    return bool(required) and all(required)


def _ask(name: str, found: dict[str, set[str]]) -> None:
    kind = result_kind(name)
    if kind:
        found["BOOLS" if kind == "bool" else "INTEGERS"].add(name)
    if name not in found["RANDOM"]:
        for holds, place in ((is_step, "STEPS"), (has_corner, "CORNERS")):
            if holds(name):
                found[place].add(name)
    kept = saves(name)
    if kept is not None:
        found["SAVES" if kept else "SAVES_NOTHING"].add(name)


def written(found: dict[str, set[str]]) -> str:
    version = torch.__version__.partition("+")[0]
    lines = [
        f'"""What the operations of torch {version} do: written by tools/torch_ops.py, not by hand.',
        "",
        "Lint reads this file instead of torch. What schemas and derivatives cannot say is added in source/knowledge.py.",
        '"""',
        "",
        "# fmt: off",
        "from __future__ import annotations",
        "",
        f'TORCH = "{version}"',
        "",
        "",
        "def _words(text: str) -> frozenset[str]:",
        "    return frozenset(text.split())",
        "",
    ]
    for name, meaning in MEANINGS.items():
        body = textwrap.fill(" ".join(sorted(found[name])), 116, initial_indent="    ", subsequent_indent="    ")
        lines += ["", f"# {meaning}", f"{name} = _words(", '    """', body, '    """', ")"]
    return "\n".join(lines) + "\n"


def main() -> None:
    warnings.simplefilter("ignore")
    text = written(table())
    if "--check" in sys.argv:
        sys.exit(0 if PLACE.read_text(encoding="utf-8") == text else f"{PLACE} is not what tools/torch_ops.py writes")
    PLACE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
