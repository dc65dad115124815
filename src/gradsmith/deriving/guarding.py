"""What the derivation took for granted, as conditions that forward tests."""

from __future__ import annotations

from typing import Any

from gradsmith.deriving.node import Node
from gradsmith.deriving.printing import Printer
from gradsmith.deriving.reading import Reading


def conditions(reading: Reading, level: int) -> list[str]:
    """Comparisons that decided a branch; then by level: 1 sizes that were taken to be equal, 2 ranks, too, 3 every shape."""
    names: dict[Node, str] = {node: name for name, node in reading.inputs.items()}
    printer = Printer(dict(names))
    found = []
    for node, truth in reading.graph.conditions.items():
        text = printer.text(node)
        found.append(text if truth else f"not ({text})" if "==" not in text else text.replace("==", "!="))
    if level == 3:
        return [*dict.fromkeys(found), *(f"{n.name}.shape == {tuple(n.value.shape)}" for n in reading.tensors)]
    if level >= 2:
        found += [f"{n.name}.dim() == {n.value.ndim}" for n in reading.tensors]
    if level >= 1:
        found += _equal_sizes(reading)
    return list(dict.fromkeys(found))


def _equal_sizes(reading: Reading) -> list[str]:
    """`x.shape[-1:] == weight.shape`: the sizes of two inputs that met in a broadcast, told as shortly as they can be."""
    roots: dict[Any, Any] = {}

    def root(size: Any) -> Any:
        while size in roots:
            size = roots[size]
        return size

    sizes = {d for n in reading.tensors for d in n.dims if isinstance(d, Node)}
    for met in reading.graph.trusted:
        own = [m for m in met if m in sizes]
        for other in own[1:]:
            if root(other) is not root(own[0]):
                roots[root(other)] = root(own[0])
    found: list[str] = []
    before: list[Node] = []
    for tensor in [t for t in reading.tensors if t.dims]:
        whole = next((b for b in before if _all_equal(b, tensor, root)), None)
        if whole is not None:
            big, small = sorted((whole, tensor), key=lambda t: -len(t.dims))
            rank = len(small.dims)
            cut = "" if rank == len(big.dims) else f"[-{rank}:]"
            found.append(f"{big.name}.shape{cut} == {small.name}.shape")
        else:
            for i, d in enumerate(tensor.dims):
                hits = [(b, j) for b in before for j, e in enumerate(b.dims) if e is not d and root(e) is root(d)]
                if hits:
                    other, j = hits[0]
                    found.append(
                        f"{other.name}.shape[{j - len(other.dims)}] == {tensor.name}.shape[{i - len(tensor.dims)}]"
                    )
        before.append(tensor)
    return found


def _all_equal(a: Node, b: Node, root: Any) -> bool:
    short = min(len(a.dims), len(b.dims))
    pairs = list(zip(a.dims[-short:], b.dims[-short:]))
    return bool(pairs) and all(p is not q and root(p) is root(q) for p, q in pairs)
