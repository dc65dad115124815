"""Data for viewers: a Chrome trace (Perfetto, chrome://tracing) and nested data for a flame chart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradsmith.profiling.result import Profile


def chrome_trace(profile: Profile) -> dict[str, Any]:
    """Trace events laid end to end with the times of the attribution; forward and backward are two tracks."""
    tracks = {"forward": 1, "backward": 2}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": f"gradsmith: {profile.name}"}}
    ]
    events += [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}} for name, tid in tracks.items()
    ]
    at = 0.0
    for event, seconds in zip(profile.recording.events, profile.spent):
        site = event.site
        place = f"{Path(site.path).name}:{site.line}" if site else ""
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": tracks[event.phase],
                "ts": round(at * 1e6, 3),
                "dur": round(seconds * 1e6, 3),
                "name": event.op,
                "cat": event.phase,
                "args": {
                    "line": place,
                    "code": site.text.strip() if site else "",
                    "node": event.node,
                    "shapes": [list(a.shape) for a in event.reads],
                    "bytes": event.read_bytes + event.written_bytes,
                },
            }
        )
        at += seconds
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def flame(profile: Profile) -> dict[str, Any]:
    """Seconds nested by phase and by the user's stack: `{"name", "value", "children"}`."""
    root: dict[str, Any] = {"name": profile.name, "value": 0.0, "children": {}}
    for event, seconds in zip(profile.recording.events, profile.spent):
        node = root
        node["value"] += seconds
        frames = [f"{s.function} {Path(s.path).name}:{s.line}" for s in reversed(event.sites)]
        for name in (event.phase, *frames, event.op):
            node = node["children"].setdefault(name, {"name": name, "value": 0.0, "children": {}})
            node["value"] += seconds
    return _listed(root)


def _listed(node: dict[str, Any]) -> dict[str, Any]:
    children = sorted((_listed(c) for c in node["children"].values()), key=lambda c: -c["value"])
    return {"name": node["name"], "value": node["value"], "children": children}
