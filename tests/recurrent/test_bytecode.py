"""Names are read off bytecode by hand, for speed; `dis` must say the same."""

from __future__ import annotations

import types

import torch

from gradsmith.recurrent.bytecode import _by_dis, _nested, names_read


def test_names_are_those_that_dis_reads() -> None:
    functions = [
        value
        for space in (torch.nn.functional, torch.nn.Module, torch.Tensor, types)
        for value in vars(space).values()
        if isinstance(value, types.FunctionType)
    ]
    codes = [code for function in functions for code in _nested(function.__code__)]
    assert len(codes) > 200
    assert max(len(code.co_code) for code in codes) > 600  # some have arguments of more than one byte
    for code in codes:
        assert names_read(code) == _by_dis(code), code
