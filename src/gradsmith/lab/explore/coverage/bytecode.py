"""The lines and the conditional jumps of a code object, as far as they belong to a run that returns.

What can only end in an exception (a `raise`, a failed `assert`) computes no gradient, and what only an exception leads to
(an `except`) is not reached by other inputs: neither is counted.
"""

from __future__ import annotations

import dis
import functools
from dataclasses import dataclass
from types import CodeType

from gradsmith.lab.explore.coverage.point import NOT_NONE
from gradsmith.source.loaded import line_of

_ENDS = ("RETURN_", "RAISE_VARARGS", "RERAISE")
_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE")
_PROLOGUE = ("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "GEN_START", "NOP", "CACHE")
_FIXED = (
    "LOAD_CONST",
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "PUSH_NULL",
    "PRECALL",
    "CALL",
    "BUILD_TUPLE",
    "CALL_FUNCTION",
    "CACHE",
    "LOAD_SMALL_INT",
)


@dataclass(frozen=True)
class Jump:
    """A conditional jump. `sides` says what it means where the run goes on."""

    line: int
    what: str
    sides: tuple[tuple[int, str], ...]  # offset of the next instruction, and the side that this is
    loop: bool = False  # its rounds are counted; the first side is another round
    varies: bool = True  # the number of rounds is not written down in the source


@dataclass(frozen=True)
class Shape:
    """What a code object has: lines by the offset of each instruction that is counted, and jumps by theirs."""

    lines: dict[int, int]
    jumps: dict[int, Jump]

    @property
    def numbers(self) -> set[int]:
        return set(self.lines.values())


@functools.lru_cache(maxsize=512)
def shape_of(code: CodeType) -> Shape:
    """The lines and jumps of a function.

    >>> def f(x):
    ...     if x > 0:
    ...         return x
    ...     return -x
    >>> shape = shape_of(f.__code__)
    >>> len(set(shape.lines.values())), [[side for _, side in jump.sides] for jump in shape.jumps.values()]
    (3, [['true', 'false']])
    """
    instructions = list(dis.get_instructions(code))
    line_at = _lines(code)
    live = _live(instructions)
    lines = {
        i.offset: line_at[i.offset]
        for i in instructions
        if i.offset in live and i.opname not in _PROLOGUE and i.offset in line_at
    }
    jumps: dict[int, Jump] = {}
    for number, instruction in enumerate(instructions[:-1]):
        following = instructions[number + 1].offset
        if instruction.offset not in live or not {following, instruction.argval} <= live:
            continue
        if instruction.opname == "FOR_ITER":
            line = line_at.get(instruction.offset, 0)
            sides = ((following, "again"), (int(instruction.argval), "over"))
            jumps[instruction.offset] = Jump(
                line, "", sides, loop=True, varies=not _fixed(instructions, number, line_at)
            )
        elif "JUMP" in instruction.opname and "_IF_" in instruction.opname:
            before = instructions[number - 1]
            line = line_at.get(before.offset, line_at.get(instruction.offset, 0))
            yes, no = _meaning(instruction.opname)
            sides = ((int(instruction.argval), yes), (following, no))
            jumps[instruction.offset] = Jump(
                line, _text(code, before), tuple(sorted(sides, key=lambda s: s[1] != "true"))
            )
    return Shape(lines, _with_rounds(instructions, jumps))


def _meaning(opname: str) -> tuple[str, str]:
    """What it means to jump, and not to."""
    if opname.endswith("NOT_NONE"):
        return NOT_NONE, "None"
    if opname.endswith("NONE"):
        return "None", NOT_NONE
    return ("true", "false") if "IF_TRUE" in opname else ("false", "true")


def _with_rounds(instructions: list[dis.Instruction], jumps: dict[int, Jump]) -> dict[int, Jump]:
    """A `while` asks twice in the same words, at its head and, jumping back, at its foot."""
    back = {
        (jumps[i.offset].line, jumps[i.offset].what)
        for i in instructions
        if i.offset in jumps and not jumps[i.offset].loop and int(i.argval) < i.offset
    }
    return {
        offset: Jump(j.line, j.what, j.sides, loop=True) if not j.loop and (j.line, j.what) in back else j
        for offset, j in jumps.items()
    }


def _lines(code: CodeType) -> dict[int, int]:
    found: dict[int, int] = {}
    for start, end, line in code.co_lines():
        if line is not None:
            found.update(dict.fromkeys(range(start, end, 2), line))
    return found


def numbers_without(code: CodeType, never: frozenset[tuple[int, int]]) -> set[int]:
    """The lines that are left if a run never goes on from the first to the second offset of these."""
    instructions, line_at = list(dis.get_instructions(code)), _lines(code)
    live = _live(instructions, never)
    return {line_at[offset] for offset in shape_of(code).lines.keys() & live}


def _live(instructions: list[dis.Instruction], never: frozenset[tuple[int, int]] = frozenset()) -> set[int]:
    """Offsets that are reached without an exception, and from which a return is."""
    after: dict[int, list[int]] = {}
    for number, i in enumerate(instructions):
        follows = after.setdefault(i.offset, [])
        if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs:
            follows.append(int(i.argval))
        if not i.opname.startswith(_ENDS) and i.opname not in _ALWAYS and number + 1 < len(instructions):
            follows.append(instructions[number + 1].offset)
    after = {offset: [to for to in follows if (offset, to) not in never] for offset, follows in after.items()}
    before: dict[int, list[int]] = {}
    for offset, follows in after.items():
        for other in follows:
            before.setdefault(other, []).append(offset)
    ends = [i.offset for i in instructions if i.opname.startswith("RETURN_") and i.opname != "RETURN_GENERATOR"]
    return _reached([instructions[0].offset], after) & _reached(ends, before)


def _reached(starts: list[int], edges: dict[int, list[int]]) -> set[int]:
    seen: set[int] = set()
    stack = list(starts)
    while stack:
        offset = stack.pop()
        if offset not in seen:
            seen.add(offset)
            stack.extend(edges.get(offset, ()))
    return seen


def _fixed(instructions: list[dis.Instruction], loop: int, line_at: dict[int, int]) -> bool:
    """Whether what a `for` runs over is written down: `range(3)`, `(0, 1)`."""
    line = line_at.get(instructions[loop].offset)
    before = [i for i in instructions[:loop] if i.opname != "GET_ITER"]
    for instruction in reversed(before):
        if line_at.get(instruction.offset) != line:
            return True
        if instruction.opname not in _FIXED:
            return False
    return True


def _text(code: CodeType, instruction: dis.Instruction) -> str:
    """What was asked, as it is written; empty where Python does not know (3.10), or it spans lines."""
    positions = getattr(instruction, "positions", None)
    if positions is None or positions.lineno is None or positions.lineno != positions.end_lineno:
        return ""
    line = line_of(code.co_filename, positions.lineno).encode()
    return line[positions.col_offset : positions.end_col_offset].decode(errors="replace").strip()
