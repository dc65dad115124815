"""Subjects that a source declares inputs for, ready to be profiled."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import nn

import gradsmith as gs
from gradsmith.inputs.declared import built


def declared(module: ModuleType) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every declared subject with its inputs; a layer's class is built with the width of its input."""
    for name, builder in module.gradsmith_inputs.items():
        torch.manual_seed(0)
        args, _ = built(builder)
        subject = getattr(module, name)
        yield (_layer(subject, args[0]) if _is_layer(subject) else subject), args


def profiles(module: ModuleType, **options: Any) -> list[gs.Profile]:
    return [gs.profile(subject, *args, **{"budget": 2.0, **options}) for subject, args in declared(module)]


def _is_layer(subject: Any) -> bool:
    return isinstance(subject, type) and issubclass(subject, nn.Module)


def _layer(cls: type[nn.Module], x: torch.Tensor) -> nn.Module:
    own = cls.__dict__.get("__init__")
    parameters = list(inspect.signature(own).parameters.values())[1:] if own is not None else []
    sizes = [x.shape[-1] for p in parameters if p.default is p.empty]
    return cls(*sizes).to(x.dtype)
