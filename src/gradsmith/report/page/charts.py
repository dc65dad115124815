"""Charts as inline SVG, drawn by Matplotlib; empty where it is not installed (the numbers stand in tables, too).

Letters and axes take the colour of the page, so that they can be read on dark and on light. Ids are made unique, because
several drawings share one document.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

_INK = "#010203"  # stands for the colour of the page's letters; nothing else is drawn in it
_FILL = "#3b82c4"
_LABEL = 48
_CELLS = ("#9aa7b5", _FILL, "#d8433b")  # an element, one that was touched, one that is none
_WIDEST, _WRAPPED = 48, 32  # a row of the tensor as it is; elements in a row where that is longer, or there are no rows
_MOST = 2048
_GROWTHS, _NAMED = 8, 3  # lines in a plot of growth, and names at each


def gradient_error(gradients: Mapping[str, Any], key: str) -> str:
    """Three heat maps: what backward claimed, what is true, and the difference, with the wrong element marked."""
    claimed, true = _numbers(gradients["claimed"]), _numbers(gradients["true"])
    difference = [[a - b for a, b in zip(*rows)] for rows in zip(claimed, true)]
    top, left, wrong = gradients["top"], gradients["left"], gradients["wrong"]

    def draw(figure: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        shared = _largest([*claimed, *true])
        panels = (("claimed by backward", claimed, shared), ("true", true, shared), ("difference", difference, None))
        for axes, (title, values, limit) in zip(figure.subplots(1, 3), panels):
            most = limit or _largest(values)
            # The edges of the picture are the numbers of rows and columns in the whole gradient.
            edges = (left - 0.5, left + len(values[0]) - 0.5, top + len(values) - 0.5, top - 0.5)
            shown = axes.imshow(values, cmap="RdBu_r", vmin=-most, vmax=most, extent=edges, aspect="equal")
            axes.set_title(title, fontsize=9)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
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


def access(told: Mapping[str, Any], words: str, key: str) -> str:
    """A tensor as it lies in memory, row by row, and beyond its ends: what one program of a kernel touched."""
    elements, shape = told["elements"], told["shape"]
    wide = shape[-1] if len(shape) > 1 and 1 < shape[-1] <= _WIDEST else _WRAPPED
    touched = _cells(told["touched"])
    outside = [n for n in touched if not 0 <= n < elements]
    rows = _rows_to_draw(outside, touched, elements, wide)
    place = {row: number for number, row in enumerate(rows)}

    def draw(figure: Any) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        axes = figure.subplots()
        kinds = [[_kind(row * wide + column, elements, touched) for column in range(wide)] for row in rows]
        axes.imshow(kinds, cmap=ListedColormap(["#00000000", *_CELLS]), vmin=0, vmax=3, aspect="equal")
        for line in range(wide + 1):
            axes.axvline(line - 0.5, color=_INK, linewidth=0.3)
        for line in range(len(rows) + 1):
            axes.axhline(line - 0.5, color=_INK, linewidth=0.3)
        crossed = [n for n in outside if n // wide in place]
        axes.plot([n % wide for n in crossed], [place[n // wide] for n in crossed], "x", color=_INK, markersize=5)
        axes.set_yticks(range(len(rows)), [str(row * wide) for row in rows], fontsize=8)
        axes.set_ylabel("row starts at", fontsize=8)
        axes.locator_params(axis="x", integer=True, nbins=8)
        names = ("in the tensor", "touched", "touched outside the tensor (x)")
        handles = [Patch(facecolor=color, label=name) for color, name in zip(_CELLS, names)]
        axes.legend(
            handles=handles, fontsize=7, framealpha=0, labelcolor=_INK, ncols=3, loc="lower left", bbox_to_anchor=(0, 1)
        )

    label = f"The memory of {' x '.join(map(str, shape))} elements, {wide} in a row: {words}"
    return _svg(draw, (8.0, 1.0 + min(0.3, 7.0 / wide) * len(rows)), label, key)


def _cells(runs: Sequence[Sequence[int]]) -> dict[int, None]:
    """The elements of these runs, in order; of long runs both ends."""
    found: dict[int, None] = {}
    for first, last in runs:
        short = last - first < 2 * _MOST
        for n in range(first, last + 1) if short else (*range(first, first + _MOST), *range(last - _MOST, last + 1)):
            found[n] = None
    return found


def _kind(element: int, elements: int, touched: Mapping[int, None]) -> int:
    """0 nothing, 1 in the tensor, 2 touched in it, 3 touched outside."""
    inside = 0 <= element < elements
    return (2 if inside else 3) if element in touched else int(inside)


def _rows_to_draw(outside: Sequence[int], touched: Iterable[int], elements: int, wide: int) -> list[int]:
    """The first rows outside that were touched, the end of the tensor next to them, and the first touched rows inside."""
    beyond = list(dict.fromkeys(n // wide for n in outside))[:6]
    last = max(0, elements - 1) // wide
    edge = {row for row in range(last - 2, last + 1) if row >= 0} if outside and outside[-1] >= 0 else set()
    start = {row for row in range(3) if row <= last} if outside and outside[0] < 0 else set()
    inside = list(dict.fromkeys(n // wide for n in touched if 0 <= n < elements))[-3:]
    return sorted({*beyond, *edge, *start, *inside})


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
    """How much of each quantity there is when one dimension is multiplied; what grows alike shares a line."""
    alike: dict[float, list[str]] = {}
    for dimension, name, exponent in exponents:
        alike.setdefault(round(exponent, 1) + 0.0, []).append(f"{name} with {dimension}")
    lines = sorted(alike.items(), reverse=True)[:_GROWTHS]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        factors = [1, 2, 4, 8]
        for exponent, names in lines:
            more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            label = f"n^{exponent:.1f}: {', '.join(names[:_NAMED])}{more}"
            axes.plot(factors, [f**exponent for f in factors], marker="o", markersize=3, label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")  # plain numbers: powers would be written as formulas
        axes.set_xlabel("times the size", fontsize=8)
        axes.set_ylabel("times as much", fontsize=8)
        axes.legend(fontsize=7, framealpha=0, labelcolor=_INK, loc="lower left", bbox_to_anchor=(0, 1))

    return _svg(draw, (8.0, 2.4 + 0.17 * len(lines)), "Growth: how much each quantity grows with the size", key)


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
    with rc_context(how), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a label that does not fit says nothing to who reads the terminal
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(stream.getvalue(), label, key)


def _inline(text: str, label: str, key: str) -> str:
    """The drawing as a part of a page: without headers, with ids of its own and a name for screen readers."""
    import html

    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.S)  # page.css says how lines meet
    seen: set[str] = set()

    def own(found: re.Match[str]) -> str:
        """Matplotlib gives the same id to parts that are alike: the first keeps it."""
        first = found[1] not in seen
        seen.add(found[1])
        return f' id="{key}-{found[1]}"' if first else ""

    text = re.sub(r'\sid="([^"]*)"', own, text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{key}-", text)
    text = text.replace(_INK, "currentColor")
    text = re.sub(
        r"font-family: [^;\"]*?(sans-serif|monospace)(?=[;\"])", r"font-family: \1", text
    )  # of the page's reader
    text = re.sub(r"\s*\n\s*", " ", text)
    # A hundredth of a point is finer than a screen shows. What is read stands between tags, and keeps its digits.
    text = re.sub(r'="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), text)
    size = re.search(r'width="([\d.]+)pt"', text)
    wide = f"max-width:{size[1]}pt" if size else ""
    head = f'<svg role="img" aria-label="{html.escape(label)}" style="{wide}"'
    return re.sub(r'(width|height)="[\d.]+pt" ?', "", text.replace("<svg", head, 1), count=2)


def _numbers(rows: Any) -> list[list[float]]:
    """Numbers that JSON lacks come as strings: inf and nan."""
    return [[float(value) for value in row] for row in rows]


def _largest(rows: Sequence[Sequence[float]]) -> float:
    return max((abs(v) for row in rows for v in row if math.isfinite(v)), default=0.0) or 1.0
