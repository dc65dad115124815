"""Programs of one launch run in any order on a GPU: what two of them do to the same element must not depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradsmith.lab.triton.memory import LaneGroup, Numbers, Region, RunningKernel

_NOBODY = -1


def loaded(launch: RunningKernel, part: LaneGroup, program: int) -> tuple[str, str] | None:
    """Kind and words of what is wrong with a plain load, if anything; and the load is noted."""
    if launch.alone:
        return None
    region, index = part.region, part.indices
    region.shadow()
    writer, reader, several, atomic = _shadows(region)
    found = None
    if not launch.orders(program):
        found = _other(writer[index], program, index, region, "order", "reads element {} that {} stores")
        found = found or _other(
            atomic[index], program, index, region, "mixed", "loads element {}, which {} changes by an atomic"
        )
    several[index] |= (reader[index] != _NOBODY) & (reader[index] != program)
    reader[index] = program
    return found


def stored(launch: RunningKernel, part: LaneGroup, program: int, value: Numbers) -> tuple[str, str] | None:
    """The same for a plain store of these values, one for each lane."""
    region, index = part.region, part.indices
    found = _twice(region, index, value[part.lanes[part.inside]])
    if launch.alone:
        return found
    region.shadow()
    writer, reader, several, atomic = _shadows(region)
    if not launch.orders(program) and found is None:
        kind = "order"
        both = (writer[index] != _NOBODY) & (writer[index] != program)
        if both.any() and _same(region, index[both], value[part.lanes[part.inside]][both]):
            kind = "same value"
        found = _other(writer[index], program, index, region, kind, "stores element {}, and so does {}")
        reading = np.where(several[index] & (reader[index] == program), -2, reader[index])
        found = found or _other(reading, program, index, region, "order", "stores element {} that {} reads")
        found = found or _other(
            atomic[index], program, index, region, "mixed", "stores element {}, which {} changes by an atomic"
        )
    writer[index] = program
    return found


def changed(launch: RunningKernel, part: LaneGroup, program: int) -> tuple[str, str] | None:
    """The same for an atomic."""
    if launch.alone:
        return None
    region, index = part.region, part.indices
    region.shadow()
    writer, reader, _, atomic = _shadows(region)
    found = None
    if not launch.orders(program):
        plain = np.where(writer[index] != _NOBODY, writer[index], reader[index])
        found = _other(
            plain,
            program,
            index,
            region,
            "mixed",
            "uses an atomic on element {}, and {} accesses it without an atomic",
        )
    atomic[index] = program
    return found


def _shadows(region: Region) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    assert region.writer is not None and region.reader is not None
    assert region.several is not None and region.atomic is not None
    return region.writer, region.reader, region.several, region.atomic


def _other(who: Numbers, program: int, index: Numbers, region: Region, kind: str, words: str) -> tuple[str, str] | None:
    foreign = (who != _NOBODY) & (who != program)
    if not foreign.any():
        return None
    at = int(np.argmax(foreign))
    name = "another program" if who[at] < 0 else f"program {int(who[at])}"
    return kind, f"program {program} {words.format(region.element(int(index[at])), name)} in the same launch"


def _twice(region: Region, index: Numbers, value: Numbers) -> tuple[str, str] | None:
    """Lanes of one store that hit the same element with different values."""
    if len(index) < 2 or (np.diff(index) > 0).all() or len(np.unique(index)) == len(index):
        return None
    order = np.lexsort((value, index))
    element, number = index[order], value[order]
    differ = (element[1:] == element[:-1]) & (number[1:] != number[:-1])
    differ &= ~((number[1:] != number[1:]) & (number[:-1] != number[:-1]))
    if not differ.any():
        return None
    return "lanes", f"two lanes store different values into element {region.element(int(element[1:][differ][0]))}"


def _same(region: Region, index: Numbers, value: Any) -> bool:
    if value.dtype.itemsize != region.item:
        return False
    whole = len(region.raw) // region.item * region.item
    now = region.raw[:whole].view(value.dtype)[index]
    return bool(np.array_equal(now, value, equal_nan=value.dtype.kind == "f"))
