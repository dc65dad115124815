"""Write docs/derived.md: what `gradsmith derive` makes of twelve well-known operations, and what each saves for backward.

    python docs/derived.py

The forwards are those of examples/derive/forwards.py. The page is kept in the repository, because deriving and proving all of
them takes a minute; tests/test_docs_site.py (deep) holds it to what is derived now.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gradsmith.writing.derive import written

HERE = Path(__file__).parent
PAGE = HERE / "derived.md"
HEAD = """# Twelve derived operations

Each forward below is plain PyTorch, from [examples/derive/forwards.py](../examples/derive/forwards.py). Under it stands the Function that
`gradsmith derive` wrote. `gs.check` verified it first. To print one yourself:

```
gradsmith derive examples/derive/forwards.py::rms_norm
```

The table shows how much memory is held between forward and backward. The inputs and the output are not counted, because they are in
memory anyway. The sizes are those of the small inputs in the file. Where both columns are equal, deriving saves no memory: the Function is a start for a kernel, or
for a gradient that you want to change.

How to read the Functions:

- "Saves x, beta" in a docstring names what is passed to save_for_backward.
- A tensor that needs no gradient in the example gets None ("without a gradient for target").
- A Function is written for the number of dimensions of the example, and says so ("needs x.dim() == 3") if that matters.
- "Not differentiable twice" means that a second derivative raises an error. The Functions without these words have one.
- `grad_beta_times_x` is the gradient of the product `beta * x`.

[Deriving](derive.md) says how `gradsmith derive` works, and which code it cannot derive. (For contributors: `python docs/derived.py` writes this page.)

| operation | memory held by the derived Function | memory held by autograd |
| --- | --- | --- |
"""


def forwards() -> tuple[dict[str, Callable[..., Any]], dict[str, Callable[[], tuple[Any, ...]]]]:
    """(name -> forward, name -> what builds its inputs) of the example file."""
    path = HERE.parent / "examples" / "derive" / "forwards.py"
    spec = importlib.util.spec_from_file_location("derive_forwards_of_the_docs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs = module.gradsmith_inputs
    return {name: getattr(module, name) for name in inputs}, inputs


def kept(call: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """Bytes that a call keeps for backward in storages which belong neither to an input nor to an output."""
    storages: dict[int, int] = {}
    alive: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        alive.append(tensor)
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = call(*args)
    outputs = out if isinstance(out, tuple) else (out,)
    own = {t.untyped_storage().data_ptr() for t in (*args, *outputs) if isinstance(t, torch.Tensor)}
    return sum(size for place, size in storages.items() if place not in own)


def section(name: str, forward: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, str]:
    """(row of the table, section) of one operation."""
    derivation = written(forward, args, {}).derivation
    ours, theirs = kept(derivation.wrapper, args), kept(forward, args)
    row = f"| [{name}](#{name}) | {ours:,} bytes | {theirs:,} bytes |\n"
    plain, source = inspect.getsource(forward).strip(), derivation.source.strip()
    return row, f"\n## {name}\n\n```py\n{plain}\n```\n\nDerived:\n\n```py\n{source}\n```\n"


def page() -> str:
    functions, inputs = forwards()
    rows, sections = [], []
    for name, forward in functions.items():
        torch.manual_seed(0)
        row, text = section(name, forward, inputs[name]())
        rows.append(row)
        sections.append(text)
    return HEAD + "".join(rows) + "".join(sections)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
