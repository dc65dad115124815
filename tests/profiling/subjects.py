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
    """Every declared subject with its inputs; a layer's class is built with the widths of its inputs."""
    for name, builder in module.gradsmith_inputs.items():
        torch.manual_seed(0)
        args, _ = built(builder)
        subject = getattr(module, name)
        yield (_layer(subject, args) if _is_layer(subject) else subject), args


def profiles(module: ModuleType, **options: Any) -> list[gs.Profile]:
    return [gs.profile(subject, *args, **{"budget": 2.0, **options}) for subject, args in declared(module)]


def _is_layer(subject: Any) -> bool:
    return isinstance(subject, type) and issubclass(subject, nn.Module)


def _layer(cls: type[nn.Module], args: tuple[Any, ...]) -> nn.Module:
    own = cls.__dict__.get("__init__")
    parameters = list(inspect.signature(own).parameters.values())[1:] if own is not None else []
    wanted = [p for p in parameters if p.default is p.empty]
    widths = [a.shape[-1] for a in args] if len(args) >= len(wanted) else [args[0].shape[-1]] * len(wanted)
    return cls(*widths[: len(wanted)]).to(args[0].dtype)
