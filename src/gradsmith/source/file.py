"""FileModel: one file, or one notebook cell, seen as a whole; parses as little of it as a question needs."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.findings import Applicability, Edit, Finding, Severity
from gradsmith.source import bases, blocks, imports, scan, slices, suppressions, tokens, versions, walk
from gradsmith.source.edits import split_lines
from gradsmith.source.encoding import decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradsmith.source.layer import LayerModel
    from gradsmith.source.model import FunctionModel
    from gradsmith.source.project import Project


# What calls forward or backward of a class by name.
CALLED = (".forward(", ".backward(")
_TOP = re.compile(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.M)


_ONLY_WORDS = bytes(i if i > 127 or chr(i).isalnum() or chr(i) == "_" else 32 for i in range(256))


def has_word(text: str, word: str) -> bool:
    """Finding the letters and looking at their neighbours is ten times as fast as an expression with boundaries.

    >>> has_word("fused_relu(x)", "relu"), has_word("y = relu(x)", "relu")
    (False, True)
    """
    at = text.find(word)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(word) : at + len(word) + 1]
        if not any(char.isalnum() or char == "_" for char in around):
            return True
        at = text.find(word, at + 1)
    return False


def _name_before(text: str, end: int) -> str:
    """The letters of a name that ends here.

    >>> _name_before("y = ops.Square.forward(x)", 14)
    'Square'
    """
    start = end
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:end]


class Place(NamedTuple):
    """Where a node stands: lines from 1, columns from 0, in characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(eq=False)
class FileModel:
    """One source text. `functions` and `layers` are built by its project, once somebody asks for them."""

    path: str
    text: str
    cell: int | None = None
    project: Project | None = field(default=None, repr=False)
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict, repr=False)
    _unlinked: list[ast.AST] = field(default_factory=list, repr=False)
    _blocks: dict[int, ast.stmt | None] = field(default_factory=dict, repr=False)
    _aliases: dict[str, str] = field(default_factory=dict, repr=False)
    _firsts: dict[str, int] = field(default_factory=dict, repr=False)
    _noted: dict[str, bool] = field(default_factory=dict, repr=False)
    _counted: tuple[int, int] = field(default=(0, 0), repr=False)  # a place that was asked for, and the lines before it
    _length: int = field(default=0, repr=False)  # of a text that was left behind

    def __getstate__(self) -> dict[str, object]:
        """On its way to another process a file leaves its text behind: reading it again takes a tenth of the time."""
        left = ("lines", *(("text",) if self.path.endswith(scan.ENDINGS) else ()))
        return {name: value for name, value in vars(self).items() if name not in left} | {"_length": len(self.text)}

    def __getattr__(self, name: str) -> str:
        if name != "text":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        self.text = self._read_again()
        return self.text

    def _read_again(self) -> str:
        source = scan.read(scan.Unread(self.path))
        try:
            text = decoded(source.data) if isinstance(source, scan.SourceFile) else ""
        except (UnicodeDecodeError, LookupError, SyntaxError):
            text = ""
        return text if len(text) == self._length else ""

    @property
    def changed(self) -> bool:
        """Has the file become another one since it was first looked at?"""
        return not self.text and self._length > 0

    @property
    def is_test(self) -> bool:
        """By its name, or by a folder that it stands in."""
        *folders, name = self.path.replace("\\", "/").split("/")
        named = name.startswith("test_") or name.removesuffix(".py").endswith("_test") or name == "conftest.py"
        return named or not {"tests", "test", "testing"}.isdisjoint(folders)

    @property
    def functions(self) -> list[FunctionModel]:
        return self.project.models_of(self).functions if self.project is not None else []

    @property
    def layers(self) -> list[LayerModel]:
        return self.project.models_of(self).layers if self.project is not None else []

    @cached_property
    def lines(self) -> list[str]:
        return split_lines(self.text)

    @cached_property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @cached_property
    def imports(self) -> imports.Imports:
        return imports.read(self.text)

    def in_docstring(self, offset: int) -> bool:
        """Does a character stand in a docstring? Counting triple quotes is quick, and clears nearly every one."""
        if bisect_left(self._triple_quotes, offset) % 2 == 0:
            return False
        before = bisect_left(self._triple_quoted, (offset, 0)) - 1
        return before >= 0 and self._triple_quoted[before][1] > offset

    def _in_string(self, index: int) -> bool:
        """Does a line, by its index from 0, begin inside a string? What looks like code there is a text."""
        return 0 <= index < len(self._letters_before) and self.in_docstring(self._letters_before[index] + index)

    @cached_property
    def _letters_before(self) -> list[int]:
        """How many characters stand before each line, line ends not counted."""
        lines = self.text.split("\n") if "\r" in self.text else self.lines
        return list(accumulate(map(len, lines), initial=0))[:-1]

    @cached_property
    def _triple_quotes(self) -> list[int]:
        return slices.triple_quotes(self.text)

    @cached_property
    def _triple_quoted(self) -> list[tuple[int, int]]:
        return slices.triple_quoted(self.text, self._triple_quotes)

    @cached_property
    def headers(self) -> list[slices.ClassHeader]:
        return slices.headers(self.text)

    @cached_property
    def direct_functions(self) -> frozenset[slices.ClassHeader]:
        """The classes that derive from torch's Function, as far as this file tells."""
        return bases.direct_functions(self)

    @cached_property
    def holders(self) -> frozenset[str]:
        """The names whose forward or backward somebody calls in this file: `X` of `X.forward(`."""
        known = (called for called in CALLED if self._noted.get(called, True))
        calls = (at for called in known for at in self.occurrences(called))
        return frozenset(name for at in calls if (name := _name_before(self.text, at)))

    @cached_property
    def tops(self) -> dict[str, int]:
        """Where each name is first defined or assigned at the top of the file."""
        found: dict[str, int] = {}
        for match in _TOP.finditer(self.text):
            found.setdefault(match[1] or match[2], match.start())
        return found

    def alias_of(self, name: str) -> str:
        """What `name = other.name` at the top of the file makes of it; the name itself where nothing does. Asked once of each."""
        if name not in self._aliases:
            pattern = rf"^{name}[ \t]*=[ \t]*([\w.]+)[ \t]*(?:#.*)?$"
            match = re.search(pattern, self.text, re.M) if f"{name} =" in self.text else None
            self._aliases[name] = match[1] if match else name
        return self._aliases[name]

    def top_at(self, offset: int) -> str | None:
        """The name of the function or class at the top of the file that holds a character."""
        start = blocks.body(self.lines, blocks.start(self.lines, self._lines_before(offset)))
        match = _TOP.match(self.lines[start])
        return match[1] if match else None

    @cached_property
    def comments(self) -> suppressions.Suppressions:
        """Suppressions and declarations of this file."""
        lowered = self.text.lower()
        return suppressions.read(self.lines if "gradsmith:" in lowered or "noqa" in lowered else ())

    @cached_property
    def comment_lines(self) -> dict[int, str]:
        """Every comment by its line. Costs as much as parsing the file."""
        return tokens.comments(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """The whole file, parsed. Costs 6 ms per 1,000 lines: ask `block` or `blocks_with` first."""
        tree = ast.parse(self.text)
        self.link(tree)
        return tree

    @cached_property
    def parses(self) -> bool:
        """Whether the whole file is Python: not so while it is being edited."""
        try:
            return bool(self.tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False

    def is_dead(self, line: int) -> bool:
        """Does a line stand in a branch that only old releases of PyTorch take?"""
        return any(line in lines for lines in self._dead_lines)

    @cached_property
    def _dead_lines(self) -> list[range]:
        return versions.dead_lines(self)

    def link(self, root: ast.AST) -> None:
        """Have the parent of every node under `root` in `parents`, once somebody asks for it."""
        self._unlinked.append(root)

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent, for what was parsed so far. Linking costs as much as parsing, so it waits."""
        while self._unlinked:
            walk.link(self._unlinked.pop(), self._parents)
        return self._parents

    def mentions(self, *words: str) -> bool:
        """Does any of the words occur in the text?"""
        return any(self._holds(word) for word in words)

    def _holds(self, word: str) -> bool:
        noted = self._noted.get(word)
        if noted is None:
            noted = self._noted[word] = word in self.text
        return noted

    def note(self, found: Iterable[tuple[str, bool]]) -> None:
        """Which words occur, for `mentions` to know."""
        self._noted.update(found)

    def uses(self, name: str) -> bool:
        """Does the name occur in the text as a word of its own?"""
        return name.encode() in self.names

    @cached_property
    def names(self) -> frozenset[bytes]:
        """Every word of the text."""
        # A third of the time that an expression takes; letters beyond ASCII stay what they are.
        return frozenset(self.text.encode(errors="replace").translate(_ONLY_WORDS).split())

    def blocks_with(self, *words: str, containing: str = "") -> Iterator[ast.stmt]:
        """Top-level statements (whole functions, whole classes) whose text holds one of the words."""
        return self.blocks_matching("|".join(map(re.escape, words)), containing=containing)

    def blocks_matching(self, pattern: str, *, containing: str = "") -> Iterator[ast.stmt]:
        """Top-level statements whose text matches; the pattern sees lines (`^` is a line's start).

        Statements without the text `containing` are not parsed, which is what costs.
        """
        return self.blocks_at((match.start() for match in re.finditer(pattern, self.text, re.M)), containing=containing)

    def occurrences(self, word: str) -> Iterator[int]:
        """Where the letters stand in the text. For one word this is ten times as fast as an expression."""
        at = self.text.find(word)
        while at >= 0:
            yield at
            at = self.text.find(word, at + 1)

    def lines_like(self, pattern: re.Pattern[str], *words: str) -> list[int]:
        """Where lines begin that match; each holds one of the words, which are found ten times as fast as the pattern."""
        starts = {self.text.rfind("\n", 0, at) + 1 for word in words for at in self.occurrences(word)}
        return sorted(start for start in starts if pattern.match(self.text, start) is not None)

    def line_number(self, offset: int) -> int:
        """The line, from 1, that holds a character."""
        return self._lines_before(offset) + 1

    def _lines_before(self, offset: int) -> int:
        """Counted from the place that was asked for last, which is near as a rule, and not from the beginning."""
        at, lines = self._counted
        lines += self.text.count("\n", at, offset) if offset >= at else -self.text.count("\n", offset, at)
        self._counted = (offset, lines)
        return lines

    def stands_in(self, offset: int, function: str) -> bool:
        """Whether a function of that name stands around a character. Asked of the lines: parsing is what costs."""
        head = f"def {function}("
        if head not in self._firsts:
            self._firsts[head] = self.text.find(head)
        if not 0 <= self._firsts[head] < offset:
            return False
        around = blocks.functions_around(self.lines, self.line_number(offset))
        return any(f"def {function}(" in self.lines[index] for index, _ in around)

    def blocks_at(self, offsets: Iterable[int], *, containing: str = "") -> Iterator[ast.stmt]:
        """The top-level statements that hold these characters, once each."""
        seen: set[int] = set()
        for offset in offsets:
            start = blocks.start(self.lines, self._lines_before(offset))
            if start in seen:
                continue
            seen.add(start)
            if containing and not any(containing in line for line in self.lines[start : blocks.end(self.lines, start)]):
                continue
            if (node := self._parse_block(start)) is not None:
                yield node

    def block_at(self, line: int) -> ast.stmt | None:
        """The top-level statement that holds a line."""
        return self._parse_block(blocks.start(self.lines, line - 1))

    def function_at(self, line: int, *, outermost: bool = False) -> ast.stmt | None:
        """The innermost (or outermost) function around a line, parsed alone; else the top-level statement."""
        found = list(islice(blocks.functions_around(self.lines, line), None if outermost else 1))
        start, indent = found[-1] if found else (0, 0)
        return (self._parse_function(start, indent) if found else None) or self.block_at(line)

    def _parse_function(self, start: int, indent: int) -> ast.stmt | None:
        if start == 0 or start in self._blocks or self._in_string(start):
            return self._blocks.get(start)
        opening = "\n" * (start - 1) + ("if 1:\n" if indent else "\n")
        try:
            tree = ast.parse(opening + "\n".join(self.lines[start : blocks.end_of_function(self.lines, start, indent)]))
        except SyntaxError:
            return None
        outer = tree.body[0]
        found = outer.body[0] if isinstance(outer, ast.If) and indent else outer
        self.link(found)
        self._blocks[start] = found
        return found

    def block(self, name: str) -> ast.stmt | None:
        """The top-level `def name`, `class name` or `name = ...`, parsed alone; None when the file has none."""
        start = self.tops.get(name)
        return None if start is None else self._parse_block(blocks.start(self.lines, self._lines_before(start)))

    def function_named(self, name: str) -> ast.FunctionDef | None:
        """The top-level function of that name."""
        node = self.block(name)
        return node if isinstance(node, ast.FunctionDef) else None

    def value_of(self, name: str) -> ast.expr | None:
        """What is assigned to a top-level name."""
        node = self.block(name)
        return node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None

    def _parse_block(self, start: int) -> ast.stmt | None:
        if start in self._blocks:
            return self._blocks[start]
        if self._in_string(start):
            return None
        body = blocks.body(self.lines, start)
        try:
            tree = ast.parse("\n" * start + "\n".join(self.lines[start : blocks.end(self.lines, start)]))
            self.link(tree)
        except SyntaxError:
            tree = self.tree
        found = next((n for n in tree.body if (n.end_lineno or n.lineno) > body >= n.lineno - 1), None)
        self._blocks[start] = found
        return found

    def keep_class(self, node: ast.ClassDef) -> None:
        """A class that was parsed with others: whoever asks for the statement at its place need not parse it again."""
        self.link(node)
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        if node.col_offset == 0 and blocks.start(self.lines, node.lineno - 1) == first:
            self._blocks.setdefault(first, node)

    def dotted(self, node: ast.AST | None) -> str | None:
        """The full dotted name of `torch.nn.functional.relu`, `F.relu` ...; None for anything but names and dots."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        first = self.imports.names.get(node.id, node.id)
        return ".".join([first, *reversed(parts)]) if parts else first

    def place(self, node: ast.AST) -> Place:
        """The position of a node, in characters (the parser counts bytes)."""
        line: int = getattr(node, "lineno", 1)
        end_line: int = getattr(node, "end_lineno", None) or line
        column: int = getattr(node, "col_offset", 0)
        end_column: int = getattr(node, "end_col_offset", None) or column
        return Place(line, self._characters(line, column), end_line, self._characters(end_line, end_column))

    def _characters(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))

    def source_of(self, node: ast.AST) -> str:
        """The text of a node as the user wrote it."""
        place = self.place(node)
        lines = self.lines[place.line - 1 : place.end_line]
        if not lines:
            return ""
        lines[-1] = lines[-1][: place.end_column]
        lines[0] = lines[0][place.column :]
        return self.newline.join(lines)

    def at(
        self,
        node: ast.AST,
        message: str,
        *,
        advice: str | None = None,
        argument: str | None = None,
        function: str | None = None,
        edits: Sequence[Edit | None] = (),
        applicability: Applicability | None = None,
        unsafe: str = "",
        severity: Severity | None = None,
    ) -> Finding:
        """A finding at `node`. Edits are dropped altogether when one of them is None (it could not be made).

        `unsafe` says why the edits are to be read first; the advice ends with it.
        """
        place = self.place(node)
        kept = tuple(e for e in edits if e is not None)
        if len(kept) != len(edits):
            kept = ()
        if kept and unsafe:
            applicability = "unsafe"
            advice = f"{advice or ''} The change is unsafe: {unsafe}.".lstrip()
        return Finding(
            message=message,
            severity=severity or "",
            function=function,
            argument=argument,
            path=self.path,
            line=place.line,
            column=place.column,
            end_line=place.end_line,
            end_column=place.end_column,
            cell=self.cell,
            snippet=self.lines[place.line - 1] if place.line <= len(self.lines) else "",
            advice=advice,
            edits=kept,
            applicability=(applicability or "safe") if kept else None,
        )
