"""A profile as a table with bars, rendered from its JSON so that it may come from another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradsmith.report.escaping import escaped_in, without_commands
from gradsmith.report.layout import PLAIN, cut, wrapped
from gradsmith.report.place import brief, spot
from gradsmith.report.style import Style

_BAR = 20
_LINES = 8
_SAVED = 6
_DISTURBED = 0.5
_MARK = {"error": "red", "warning": "yellow", "info": "cyan"}


def render(profile: Mapping[str, Any], *, color: bool = False, width: int = PLAIN) -> str:
    style, profile = Style(color), escaped_in(profile)
    blocks = [_head(profile, style, width), _findings(profile, style, width)]
    blocks += [_by_line(profile, style, width), _by_op(profile, style)]
    blocks += [
        _memory(profile, style),
        _growth(profile, style),
        _remedies(profile, style, width),
        _notes(profile, width),
    ]
    return without_commands("\n\n".join(block for block in blocks if block) + "\n")


def too_busy(profile: Mapping[str, Any]) -> bool:
    """Whether two clocks disagree so much that neither is to be told: others had the processor for half of the time."""
    return bool(profile.get("disturbed", 0.0) > _DISTURBED)


def duration(seconds: float) -> str:
    """
    >>> duration(0.00123), duration(0.0000042), duration(2)
    ('1.23 ms', '4.2 us', '2 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{_short(seconds / scale)} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def size(count: float) -> str:
    """
    >>> size(512), size(3 << 20), size(1000 << 10)
    ('512 B', '3 MiB', '1000 KiB')
    """
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale:
            return f"{_short(count / scale)} {unit}"
    return f"{count:.0f} B"


def _short(value: float) -> str:
    """Three digits that count, and never an exponent."""
    shown = f"{value:.3g}"
    return f"{value:.0f}" if "e" in shown else shown


def bar(share: float) -> str:
    """
    >>> bar(0.5)
    '##########          '
    """
    return ("#" * round(_BAR * min(1.0, share))).ljust(_BAR)


def _head(profile: Mapping[str, Any], style: Style, width: int) -> str:
    subject, seconds, limits = profile["subject"], profile["seconds"], profile["limits"]
    place = f"  {spot(subject['path'], subject['line'])}" if subject["path"] else ""
    rows = [f"{style.bold(subject['name'])}{style.dim(place)}"]
    rows += wrapped(
        f"{subject['inputs_from']:>9}  {subject['inputs']}", width, first=f"  {'inputs':<9} ", indent=" " * 23
    )
    busy = too_busy(profile)
    if busy:
        said = f"not told: others had the processor for {profile['disturbed']:.0%} of the time; run it again when they have not"
        rows += wrapped(said, width, first=f"  {'time':<9}  ", indent=" " * 13)
    for phase in () if busy else ("forward", "backward"):
        spread, ops = seconds[phase], profile["ops"][phase]
        if spread["median"]:
            low, high = duration(spread["low"]), duration(spread["high"])
            rows.append(f"  {phase:<9} {duration(spread['median']):>9}  ({low} - {high})  {ops} ops")
    memory = profile["memory"]
    rows.append(
        f"  {'memory':<9} {size(memory['saved_bytes']):>9}  saved for backward, peak {size(memory['peak_bytes'])}"
    )
    rows += (
        []
        if busy
        else [
            (
                f"  {'limits':<9} {limits['bandwidth_share']:>8.0%}   of memory bandwidth, "
                f"{limits['arithmetic_share']:.0%} of arithmetic, {limits['python_share']:.0%} Python and dispatch"
            )
        ]
    )
    return "\n".join(rows)


def _findings(profile: Mapping[str, Any], style: Style, width: int) -> str:
    rows: list[str] = []
    for f in profile["findings"]:
        lines = wrapped(f"{f['severity']}[{f['code']} {f['rule']}] {f['message']}", width, indent="    ")
        rows += [style.paint(f["severity"], _MARK[f["severity"]]) + lines[0].removeprefix(f["severity"]), *lines[1:]]
        if f["path"] and f["line"]:
            rows.append(f"  {style.dim('-->')} {spot(f['path'], f['line'])}  {style.dim(f['snippet'].strip())}")
        if f["advice"]:
            gain = "" if too_busy(profile) else _expected(f["evidence"])
            rows += _labelled("help:", f"{f['advice']}{gain}", style.paint("help:", "green"), width)
        for s in f["symptoms"]:
            rows += _labelled("also:", f"[{s['rule']}] {s['message']}", style.dim("also:"), width)
    return "\n".join(rows)


def _labelled(label: str, text: str, painted: str, width: int) -> list[str]:
    first, *rest = wrapped(text, width, first=f"  {label} ", indent=" " * 8)
    return [first.replace(label, painted, 1), *rest]


def _expected(evidence: Mapping[str, Any]) -> str:
    """` Expected gain: 1.4x (1.3 to 1.6).`; where the bounds are far apart, only they are said."""
    gain = evidence.get("predicted_gain")
    if not isinstance(gain, float) or gain <= 1.05:
        return ""
    low, high = evidence.get("predicted_range") or (gain, gain)
    if high > 2 * low:
        return f" Expected gain: {max(1.0, low):.2g}x to {high:.2g}x."
    return f" Expected gain: {gain:.1f}x ({low:.1f} to {high:.1f})." if high > low else f" Expected gain: {gain:.1f}x."


def _by_line(profile: Mapping[str, Any], style: Style, width: int) -> str:
    busy = too_busy(profile)
    rows = []
    shown = profile["by_line"][:_LINES]
    wide = max((len(brief(use["path"], use["line"])) for use in shown), default=0)
    for use in shown:
        time = "" if busy else f"{duration(use['forward_s'] + use['backward_s']):>8}  "
        head = f"  {bar(use['share'])} {use['share']:>4.0%}  {brief(use['path'], use['line']):<{wide}} {time}"
        rows.append(head + cut(use["text"], max(8, min(60, width - len(head))))[0])
    return "\n".join([style.bold("where the time goes, by line (with its part of backward)"), *rows]) if rows else ""


def _by_op(profile: Mapping[str, Any], style: Style) -> str:
    totals: dict[tuple[str, str], list[float]] = {}
    for use in profile["by_op"]:
        entry = totals.setdefault((use["op"], use["phase"]), [0.0, 0.0])
        entry[0] += use["share"]
        entry[1] += use["calls"]
    ordered = sorted(totals.items(), key=lambda item: -item[1][0])[:_LINES]
    rows = [f"  {bar(s)} {s:>4.0%}  {op} x{int(n)} ({phase})" for (op, phase), (s, n) in ordered]
    return "\n".join([style.bold("by operation"), *rows]) if rows else ""


def _memory(profile: Mapping[str, Any], style: Style) -> str:
    groups: dict[str, dict[int, int]] = {}  # what a line saves -> bytes of each piece of memory
    counts: dict[str, int] = {}
    for s in profile["memory"]["saved"]:
        name = f" ctx.{s['attribute']}" if s["attribute"] else ""
        place = f" at {_site(s['site'])}" if s["site"] else ""
        key = f"{s['role']} {tuple(s['shape'])} {s['dtype']}, {s['how']}{name}{place}"
        groups.setdefault(key, {})[s["storage"]] = s["storage_bytes"]
        counts[key] = counts.get(key, 0) + 1
    ordered = sorted(groups.items(), key=lambda item: -sum(item[1].values()))
    rows = []
    for key, pieces in ordered[:_SAVED]:
        times = f", {counts[key]} times" if counts[key] > 1 else ""
        shared = ", all in one piece of memory" if counts[key] > 1 and len(pieces) == 1 else ""
        rows.append(f"  {size(sum(pieces.values())):>9}  {key}{times}{shared}")
    if not rows:
        return ""
    more = [f"  ... and {len(ordered) - _SAVED} more"] if len(ordered) > _SAVED else []
    return "\n".join([style.bold("saved for backward"), *rows, *more])


def _site(told: str) -> str:
    path, _, line = told.rpartition(":")
    return brief(path, int(line))


def _growth(profile: Mapping[str, Any], style: Style) -> str:
    rows = []
    for g in profile["growth"]:
        e = g["exponents"]
        parts = [f"{name} ~ n^{_number(e[key])}" for name, key in _SHOWN if _number(e[key]) > 0.05]
        rows.append(f"  {g['dimension']:<16} {', '.join(parts) or 'nothing grows'}")
    return "\n".join([style.bold("growth"), *rows]) if rows else ""


_SHOWN = (
    ("forward ops", "forward_ops"),
    ("backward ops", "backward_ops"),
    ("forward bytes", "forward_bytes"),
    ("backward bytes", "backward_bytes"),
    ("saved", "saved_bytes"),
)


def _number(value: Any) -> float:
    return round(float(value), 1) if isinstance(value, (int, float)) else 0.0


def _remedies(profile: Mapping[str, Any], style: Style, width: int) -> str:
    """What was tried, with its gain; what did not apply is told in one sentence."""
    rows = []
    for r in profile["remedies"]:
        if r["gain"] is None:
            continue
        gain = r["gain"]
        memory = f", saves {size(r['saved_bytes'])} for backward" if r["saved_bytes"] is not None else ""
        rows.append(f"  {gain['value']:>7.2f}x  {r['name']} ({gain['low']:.2f} - {gain['high']:.2f}){memory}")
    unfit = "; ".join(f"{r['name']} ({r['note']})" for r in profile["remedies"] if r["gain"] is None)
    told = wrapped(f"does not apply: {unfit}", width, first="  ", indent="    ") if unfit else []
    return "\n".join([style.bold("tried: how many times faster"), *rows, *told]) if rows or told else ""


def _notes(profile: Mapping[str, Any], width: int) -> str:
    return "\n".join(line for note in profile["notes"] for line in wrapped(f"note: {note}", width, indent="  "))
