"""What people call things: general knowledge of parameter names in code on tensors. Nothing here names a library."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

FLOATS = (
    "x, d, scalar, d o, o d, o, lead o, lead, rows d, lead 1, d d, one, batch d o, channels, first, one one, convolution, "
    "lead lead, batch d d, 3 d, 4 d"
)


@dataclass(frozen=True)
class Habit:
    """Names of one habit: as a tensor it has these forms and this flavour, as a plain value it is one of these."""

    pattern: str
    forms: str = ""
    flavour: str = "normal"
    values: tuple[Any, ...] = ()
    elements: str = "floating"
    plain_first: bool = False  # usually no tensor


HABITS = (
    # Recurrent cells: input-to-hidden and hidden-to-hidden, the gates stacked.
    Habit("w(eights?)?_?(ih|i|x|xh)", "3o d, 4o d, o d, d o"),
    Habit("w(eights?)?_?(hh|h)|u", "3o o, 4o o, o o, o d, 3 d, 4 d, d d"),
    Habit("b(ias)?_?(ih|hh|h|i)", "3o, 4o, o, d"),
    Habit(
        "weights?|w|kernel|filters?|[wu]_?\\w{1,2}|\\w+_(weight|w|kernel)",
        "o d, d o, d, x, convolution, o, d d, scalar, 3 d, 4 d, batch d o",
    ),
    Habit("bias(es)?|\\w+_bias", "o, d, scalar, x, channels"),
    Habit("init(ial)?\\w*", "second o, first o, x, lead o, d, o"),
    Habit("h(x|idden|0)?|c(x|0)?|state|hidden_state|cell|\\w*hidden\\w*", "x, lead o, first o, second o, d, o"),
    Habit("x2|other|y|b|right|rhs|keys?|values?|k|v", FLOATS.replace("x, d,", "x, rows d, d,", 1)),
    Habit("masks?|\\w+_mask|mask_\\w+", "x, lead, d, lead lead, scalar", elements="bool"),
    Habit("(seq_?)?len(gth)?s?|lengths", "first, lead", elements="integer", values=(3,)),
    # Where one sequence after the other begins in what holds them all; the last one says where they end.
    Habit(
        "offsets|ind_?ptr|(crow|row|col)_?(ptr|indices)|cu(m|mulative)?_?(seq)?_?len(gth)?s?\\w*",
        "first, lead, d",
        "ramp",
        elements="integer",
    ),
    Habit(
        "labels?|targets?|\\w+_(labels?|targets?|ids?)|ids?|class(es)?",
        "lead, x, lead 1, first, d, scalar",
        elements="integer",
    ),
    Habit(
        "ind(ex|ices|s)?|idxs?|perm\\w*|(ind|idx|index|indices)_\\w+|\\w+_(idx|index|indices|inds?)",
        "lead, x, first, d, lead 1, o",
        "reversed",
        elements="integer",
    ),
    # Where the entries of a sparse matrix, or the ends of an edge, are; beside them the entries are a vector.
    Habit("rows?|cols?|columns?|senders?|receivers?", "d, lead, first, x", values=(3,), elements="integer"),
    Habit(
        "lengthscales?|length_scales?|sigmas?|stds?|vars?|variances?|taus?|temperatures?|concentrations?|rates?|scales?",
        "scalar, one one, d, x, one",
        "positive",
        (0.7,),
    ),
    Habit(
        "alphas?|betas?|gammas?|lambdas?_?|slopes?|thresholds?|thr|deltas?|margins?|means?|mu|momentum|coef\\w*|factors?|strength|k|a|lambd",
        "scalar, d, x, one, channels",
        "normal",
        (0.7, 2),
    ),
    Habit("p|probs?|probabilit\\w+|dropout\\w*|keep_prob|drop_prob", "x, lead, scalar, d", "unit", (0.4,)),
    Habit("\\w*(cov|covar|covariance|precision|spd|psd|gram|hessian)\\w*", "d d, x, batch d d, lead lead", "definite"),
    Habit("\\w*(chol|cholesky|tril|lower)\\w*", "d d, batch d d, lead lead, x", "triangular"),
    Habit("eps\\w*|epsilon|tol\\w*", "scalar", "positive", (1e-5, 0.1), plain_first=True),
    Habit("dims?|axis|axes|\\w+_dim|\\w+_axis", "", "normal", (-1, 1, 0, (1,), 2), plain_first=True),
    Habit("strides?|dilations?|groups?", "", "normal", (1, (1, 1), 2), plain_first=True),
    Habit("pad(ding)?s?", "", "normal", (0, 1, (1, 1)), plain_first=True),
    Habit("kernel_size|ksize|window(_size)?|block_size|chunk_size", "", "normal", (3, 2, (3, 3)), plain_first=True),
    Habit(
        "n|num_?\\w*|\\w*count|steps?|\\w*_size|bits|\\w*bits|top_?k|max_\\w+|min_\\w+|n_\\w+|size|levels?|power|order|exponent",
        "",
        "normal",
        (3, 2, 1, 4, 8),
        plain_first=True,
    ),
    Habit("size|shape|\\w+_shape|\\w+_size", "", "normal", ((3, 4), (4, 3), (2, 6)), plain_first=True),
    Habit(
        "is_\\w+|use_\\w+|has_\\w+|\\w*training|inplace|keep_?dims?|return_\\w+|requires_\\w+|with_\\w+|\\w*flag|preserve_\\w+|do_\\w+",
        "lead, x, first",
        "normal",
        (True, False),
        elements="bool",
        plain_first=True,
    ),
    Habit(
        "mode|reduction|\\w*type|kind|method|\\w*_mode|name", "", "normal", ("mean", "sum", "none"), plain_first=True
    ),
    Habit("memory_format", "", "normal", (torch.contiguous_format, torch.preserve_format), plain_first=True),
    Habit("dtype|\\w+_dtype", "", "normal", (torch.float64, torch.float32), plain_first=True),
    Habit("device|\\w+_device", "", "normal", (torch.device("cpu"), "cpu"), plain_first=True),
    Habit("\\w*ignore_index", "", "normal", (-100,), plain_first=True),
    # A row that is padding has no gradient by definition, although forward reads it.
    Habit("pad(ding)?_(idx|index)", "", "normal", (None, -1), plain_first=True),
    Habit(
        "min|low(er)?|lo|[ab]_?min",
        "scalar, x",
        "normal",
        (-0.5, 0.5, 1.0),
        plain_first=True,
    ),
    # Not the same as the lower one: between equal bounds nothing is left to be seen.
    Habit("max|high|upper|hi|[ab]_?max|clip\\w*", "scalar, x", "normal", (0.5, -0.5, 1.0), plain_first=True),
    Habit("seed", "", "normal", (0,), plain_first=True),
    Habit("\\w+_type", "", "normal", (torch.float64, torch.float32), plain_first=True),
    Habit("\\w*kwargs|\\w*params|cfg|\\w*options", "", "normal", ({}, None), plain_first=True),
    Habit("group|pg|process_group|generator|out|config|options|name", "", "normal", (None,), plain_first=True),
)


MATRIX = Habit("[A-Z]", "x, d d, o d, d o, batch d d")  # a capital letter, as in linear algebra


def habits(name: str) -> list[Habit]:
    """The habits a name fits, ignoring underscores at its ends and a trailing number."""
    plain = re.sub(r"\d+$", "", name.strip("_").lower()) or name.lower()
    if re.fullmatch(r"[A-Z]", name):
        return [MATRIX]
    return [h for h in HABITS if re.fullmatch(h.pattern, plain) or re.fullmatch(h.pattern, name.strip("_").lower())]
