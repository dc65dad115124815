"""Charts as inline SVG, drawn by Matplotlib; empty where it is not installed (the numbers stand in tables, too).

Letters and axes take the colour of the page, so that they can be read on dark and on light. Ids are made unique, because
several drawings share one document.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

_INK = "#010203"  # stands for the colour of the page's letters; nothing else is drawn in it
_FILL = "#3b82c4"
_LABEL = 48


def gradient_error(gradients: Mapping[str, Any], key: str) -> str:
    """Three heat maps: what backward claimed, what is true, and the difference, with the wrong element marked."""
    claimed, true = _numbers(gradients["claimed"]), _numbers(gradients["true"])
    difference = [[a - b for a, b in zip(*rows)] for rows in zip(claimed, true)]
    top, left, wrong = gradients["top"], gradients["left"], gradients["wrong"]

    def draw(figure: Any) -> None:
        shared = _largest([*claimed, *true])
        panels = (("claimed by backward", claimed, shared), ("true", true, shared), ("difference", difference, None))
        for axes, (title, values, limit) in zip(figure.subplots(1, 3), panels):
            most = limit or _largest(values)
            # The edges of the picture are the numbers of rows and columns in the whole gradient.
            edges = (left - 0.5, left + len(values[0]) - 0.5, top + len(values) - 0.5, top - 0.5)
            shown = axes.imshow(values, cmap="RdBu_r", vmin=-most, vmax=most, extent=edges, aspect="equal")
            axes.set_title(title, fontsize=9)
            axes.locator_params(integer=True, nbins=5)
            if wrong is not None:
                axes.plot(
                    wrong[1],
                    wrong[0],
                    marker="s",
                    markersize=11,
                    markerfacecolor="none",
                    markeredgecolor="#e8a100",
                    mew=2,
                )
            figure.colorbar(shown, ax=axes, shrink=0.7, format="%.3g").ax.tick_params(labelsize=7)

    shape = " x ".join(map(str, gradients["shape"]))
    at = f"; the wrong element is in row {wrong[0]}, column {wrong[1]}" if wrong is not None else ""
    label = (
        f"Heat maps of the gradient ({shape}): claimed, true, and difference (at most {_largest(difference):.3g}){at}"
    )
    height = 2.6 if len(claimed) * 3 > len(claimed[0]) else 1.6
    return _svg(draw, (9.0, height), label, key)


def bars(values: Sequence[tuple[str, float]], axis: str, key: str) -> str:
    """Horizontal bars, the first on top."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        names = [name if len(name) <= _LABEL else name[: _LABEL - 1] + "…" for name, _ in values]
        axes.barh(range(len(values)), [value for _, value in values], color=_FILL)
        axes.set_yticks(range(len(values)), names, fontsize=8, family="monospace")
        axes.invert_yaxis()
        axes.set_xlabel(axis, fontsize=8)

    return _svg(draw, (8.0, 0.7 + 0.28 * len(values)), f"Bars: {axis}", key)


def growth(exponents: Sequence[tuple[str, str, float]], key: str) -> str:
    """How each quantity grows when one dimension is multiplied: n to the power of its exponent."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        factors = [1, 2, 4, 8]
        for dimension, name, exponent in exponents:
            axes.plot(factors, [f**exponent for f in factors], marker="o", markersize=3, label=f"{name}, {dimension}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")  # plain numbers: powers would be written as formulas
        axes.set_xlabel("times the size", fontsize=8)
        axes.set_ylabel("times as much", fontsize=8)
        axes.legend(fontsize=7, framealpha=0, labelcolor=_INK, loc="upper left", bbox_to_anchor=(1, 1))

    return _svg(draw, (8.0, 2.6), "Growth: how much each quantity grows with the size", key)


def _svg(draw: Callable[[Any], None], inches: tuple[float, float], label: str, key: str) -> str:
    if find_spec("matplotlib") is None:
        return ""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    ink: dict[Any, Any] = dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK
    )
    # Letters stay letters; what users wrote is never read as a formula; the same report is the same file.
    how = {**ink, "svg.fonttype": "none", "text.parse_math": False, "svg.hashsalt": key, "font.family": "sans-serif"}
    stream = io.StringIO()
    with rc_context(how):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(stream.getvalue(), label, key)


def _inline(text: str, label: str, key: str) -> str:
    """The drawing as a part of a page: without headers, with ids of its own and a name for screen readers."""
    import html

    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    seen: set[str] = set()

    def own(found: re.Match[str]) -> str:
        """Matplotlib gives the same id to parts that are alike: the first keeps it."""
        first = found[1] not in seen
        seen.add(found[1])
        return f' id="{key}-{found[1]}"' if first else ""

    text = re.sub(r'\sid="([^"]*)"', own, text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{key}-", text)
    text = text.replace(_INK, "currentColor")
    size = re.search(r'width="([\d.]+)pt"', text)
    wide = f"max-width:{size[1]}pt" if size else ""
    head = f'<svg role="img" aria-label="{html.escape(label)}" style="{wide}"'
    return re.sub(r'(width|height)="[\d.]+pt" ?', "", text.replace("<svg", head, 1), count=2)


def _numbers(rows: Any) -> list[list[float]]:
    """Numbers that JSON lacks come as strings: inf and nan."""
    return [[float(value) for value in row] for row in rows]


def _largest(rows: Sequence[Sequence[float]]) -> float:
    return max((abs(v) for row in rows for v in row if math.isfinite(v)), default=0.0) or 1.0
