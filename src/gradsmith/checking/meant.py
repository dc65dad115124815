"""What a gradient is meant to be: by the caller, by the source, or by the project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradsmith.checking.options import Options
from gradsmith.lab import Lab, Target
from gradsmith.lab.subject.declarations import Declaration, declaration_of, parts
from gradsmith.source.loaded import file_of
from gradsmith.source.module_names import dotted_name
from gradsmith.surrogate_kinds import SURROGATE, kind_in


def declared(target: Target, options: Options) -> Declaration:
    """What the gradient is meant to be: what the caller says, else what the source says."""
    stated = declaration_of(target)
    if options.surrogates and stated == Declaration():
        stated = replace(stated, surrogate=_named_by_project(target, options.surrogates))
    if options.gradient is None:
        return replace(stated, like=options.like or stated.like)
    surrogate = (stated.surrogate or options.kind or SURROGATE) if options.gradient == "surrogate" else None
    return Declaration(surrogate, options.gradient == "approximate", options.like or stated.like)


def meant(lab: Lab) -> str:
    """In one word, as `Subject.gradient` says it."""
    return "surrogate" if lab.surrogate else "approximate" if lab.approximate else "exact"


def _named_by_project(target: Target, patterns: Sequence[str]) -> str | None:
    """The kind of surrogate that the project's patterns make of this subject, or of a class that it derives from."""
    found = ((part, file_of(part)) for part in parts(target) if hasattr(part, "__qualname__"))
    names = (dotted_name(file.path, part.__qualname__) for part, file in found if file is not None)
    return next((kind for name in names if (kind := kind_in(patterns, name)) is not None), None)
