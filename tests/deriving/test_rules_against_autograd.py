"""Every line of the table, on the samples of torch's own operator database, against autograd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gradsmith.deriving.deriving import _once
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.table import operations
from gradsmith.deriving.trying import compared

MOST = 6  # samples per operation; the deep run takes them all


def _samples(name: str) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """(function, arguments) for the samples of an operation that have tensors and simple arguments only."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if op.name.rpartition(".")[2] not in _known_as(name) or not op.supports_dtype(torch.float64, "cpu"):
            continue
        for sample in op.sample_inputs("cpu", torch.float64, requires_grad=True):
            yield op.op, sample


def _known_as(name: str) -> set[str]:
    special = {"getitem": {"__getitem__"}, "div": {"div", "true_divide"}, "vector_norm": {"vector_norm", "norm"}}
    return special.get(name, {name})


def _function(op: Any, sample: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """The call with its tensors as parameters and everything else fixed; None for nested tensors."""
    first = sample.input
    if not isinstance(first, torch.Tensor) or first.is_complex():
        return None
    tensors = [first, *(a for a in sample.args if isinstance(a, torch.Tensor))]
    if any(isinstance(a, (tuple, list)) and any(isinstance(x, torch.Tensor) for x in a) for a in sample.args):
        return None
    if any(isinstance(v, torch.Tensor) for v in sample.kwargs.values()):
        return None
    args, kwargs = sample.args, sample.kwargs

    def call(*given: Any) -> Any:
        rest = iter(given[1:])
        return op(given[0], *(next(rest) if isinstance(a, torch.Tensor) else a for a in args), **kwargs)

    names = ", ".join(f"t{i}" for i in range(len(tensors)))
    scope: dict[str, Any] = {"call": call}
    exec(f"def forward({names}):\n    return call({names})", scope)
    return scope["forward"], tuple(tensors)


@pytest.mark.parametrize("name", sorted(n for n, o in operations().items() if not o.zero))
def test_the_rule_gives_the_gradient_of_autograd(name: str) -> None:
    judged = 0
    for op, sample in _samples(name):
        made = _function(op, sample)
        if made is None or any(t.numel() > 500 for t in made[1]) or made[1][0].numel() == 0:
            continue
        try:
            derived = _once(made[0], made[1], {}, trusting=True, level=0, fast=False)
        except Refused:
            continue  # said in words; a wrong number would not be
        outcome = compared(derived.reading.fn, derived.wrapper, derived.example, set(derived.wanted))
        assert outcome in ("same", "not judged"), (
            f"{name}: {outcome} with {sample.args} {sample.kwargs}\n{derived.source}"
        )
        judged += outcome == "same"
        if judged >= MOST:
            break
    if not judged:
        pytest.skip("no sample of the operator database could be compared with autograd")


def test_the_table_has_150_operations_with_a_derivative_or_a_zero() -> None:
    assert len(operations()) >= 150
