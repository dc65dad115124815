"""What to try for a name: the shapes and values that a thing of this role usually has (source/lexicon.py knows roles)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

from gradsmith.source.lexicon import is_a

FLOATS = (
    "x, d, scalar, d o, o d, o, lead o, lead, rows d, lead 1, d d, one, batch d o, channels, first, one one, convolution, "
    "lead lead, batch d d, 3 d, 4 d"
)


@dataclass(frozen=True)
class Habit:
    """Things of one role: as a tensor it has these forms and this domain, as a plain value it is one of these."""

    role: str
    forms: str = ""
    domain: str = "normal"
    values: tuple[Any, ...] = ()
    elements: str = "floating"
    plain_first: bool = False  # usually no tensor


HABITS = (
    # Recurrent cells: input-to-hidden and hidden-to-hidden, the gates stacked.
    Habit("input weight", "3o d, 4o d, o d, d o"),
    Habit("hidden weight", "3o o, 4o o, o o, o d, 3 d, 4 d, d d"),
    Habit("cell bias", "3o, 4o, o, d"),
    Habit(
        "weight",
        "o d, d o, d, x, convolution, o, d d, scalar, 3 d, 4 d, batch d o",
    ),
    Habit("bias", "o, d, scalar, x, channels"),
    Habit("initial value", "second o, first o, x, lead o, d, o"),
    Habit("state", "x, lead o, first o, second o, d, o"),
    Habit("second operand", FLOATS.replace("x, d,", "x, rows d, d,", 1)),
    Habit("mask", "x, lead, d, lead lead, scalar", elements="bool"),
    Habit("length", "first, lead", elements="integer", values=(3,)),
    # Where one sequence after the other begins in what holds them all; the last one says where they end.
    Habit(
        "offsets",
        "first, lead, d",
        "ramp",
        elements="integer",
    ),
    Habit(
        "class",
        "lead, x, lead 1, first, d, scalar",
        elements="integer",
    ),
    Habit(
        "index",
        "lead, x, first, d, lead 1, o",
        "reversed",
        elements="integer",
    ),
    # Where the entries of a sparse matrix, or the ends of an edge, are; beside them the entries are a vector.
    Habit("place in a matrix", "d, lead, first, x", values=(3,), elements="integer"),
    Habit(
        "positive number",
        "scalar, one one, d, x, one",
        "positive",
        (0.7,),
    ),
    Habit(
        "number",
        "scalar, d, x, one, channels",
        "normal",
        (0.7, 2),
    ),
    Habit("probability", "x, lead, scalar, d", "unit", (0.4,)),
    Habit("definite matrix", "d d, x, batch d d, lead lead", "definite"),
    Habit("triangular matrix", "d d, batch d d, lead lead, x", "triangular"),
    Habit("small number", "scalar", "positive", (1e-5, 0.1), plain_first=True),
    Habit("tolerance", "scalar", "positive", (1e-8, 1e-3), plain_first=True),
    Habit("dim", "", "normal", (-1, 1, 0, (1,), 2), plain_first=True),
    Habit("stride", "", "normal", (1, (1, 1), 2), plain_first=True),
    Habit("padding", "", "normal", (0, 1, (1, 1)), plain_first=True),
    Habit("window", "", "normal", (3, 2, (3, 3)), plain_first=True),
    Habit(
        "count",
        "",
        "normal",
        (3, 2, 1, 4, 8),
        plain_first=True,
    ),
    Habit("shape", "", "normal", ((3, 4), (4, 3), (2, 6)), plain_first=True),
    Habit(
        "flag",
        "lead, x, first",
        "normal",
        (True, False),
        elements="bool",
        plain_first=True,
    ),
    Habit("mode", "", "normal", ("mean", "sum", "none"), plain_first=True),
    Habit("memory format", "", "normal", (torch.contiguous_format, torch.preserve_format), plain_first=True),
    Habit("dtype", "", "normal", (torch.float64, torch.float32), plain_first=True),
    Habit("device", "", "normal", (torch.device("cpu"), "cpu"), plain_first=True),
    Habit("ignored class", "", "normal", (-100,), plain_first=True),
    # A row that is padding has no gradient by definition, although forward reads it.
    Habit("padding index", "", "normal", (None, -1), plain_first=True),
    Habit(
        "lower bound",
        "scalar, x",
        "normal",
        (-0.5, 0.5, 1.0),
        plain_first=True,
    ),
    # Not the same as the lower one: between equal bounds nothing is left to be seen.
    Habit("upper bound", "scalar, x", "normal", (0.5, -0.5, 1.0), plain_first=True),
    Habit("seed", "", "normal", (0,), plain_first=True),
    Habit("type", "", "normal", (torch.float64, torch.float32), plain_first=True),
    Habit("options", "", "normal", ({}, None), plain_first=True),
    Habit("left out", "", "normal", (None,), plain_first=True),
)


MATRIX = Habit("", "x, d d, o d, d o, batch d d")  # a capital letter, as in linear algebra


def habits(name: str) -> list[Habit]:
    """The habits a name fits, ignoring a number behind it."""
    plain = re.sub(r"\d+$", "", name.strip("_")) or name
    if re.fullmatch(r"[A-Z]", plain):
        return [MATRIX]
    return [h for h in HABITS if is_a(name, h.role) or is_a(plain, h.role)]
