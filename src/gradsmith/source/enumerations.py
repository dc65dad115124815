"""The words that torch's own functions take for an option: whoever hands an option on to one of them takes them, too."""

from __future__ import annotations

from typing import NamedTuple


class Enumeration(NamedTuple):
    """`keyword` of these operations takes these words; `position` counts operands from 0, the tensor included."""

    keyword: str
    position: int | None
    operations: frozenset[str]
    words: tuple[str, ...]


def _row(keyword: str, position: int | None, operations: str, words: str) -> Enumeration:
    return Enumeration(keyword, position, frozenset(operations.split()), tuple(words.split()))


REDUCTIONS = ("mean", "sum", "none")
_LOSSES = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss gaussian_nll_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
"""
_FOURIER = "fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn"
ENUMERATIONS = (
    _row("reduction", None, _LOSSES, " ".join(REDUCTIONS)),
    _row("mode", 2, "pad", "constant reflect replicate circular"),
    _row("mode", 3, "interpolate upsample", "nearest linear bilinear bicubic trilinear area nearest-exact"),
    _row("mode", 2, "grid_sample", "bilinear nearest bicubic"),
    _row("padding_mode", 3, "grid_sample", "zeros border reflection"),
    _row("mode", None, "embedding_bag", "sum mean max"),
    _row("norm", 3, _FOURIER, "forward backward ortho"),
    _row("approximate", None, "gelu", "none tanh"),
    _row("side", None, "searchsorted", "left right"),
    _row("rounding_mode", None, "div divide", "trunc floor"),
    _row("reduce", 4, "scatter_reduce", "sum prod mean amax amin"),
    _row("reduce", 4, "index_reduce", "prod mean amax amin"),
    _row("UPLO", 1, "eigh eigvalsh", "L U"),
    _row("indexing", None, "meshgrid", "ij xy"),
)


def enumeration(operation: str, position: int | None, keyword: str | None) -> tuple[str, ...]:
    """What torch takes there; empty where it is no word, or we do not know.

    >>> enumeration("gelu", None, "approximate"), enumeration("pad", 2, None)[0], enumeration("sum", 1, None)
    (('none', 'tanh'), 'constant', ())
    """
    for row in ENUMERATIONS:
        here = keyword == row.keyword or (keyword is None and position is not None and position == row.position)
        if here and operation in row.operations:
            return row.words
    return ()
