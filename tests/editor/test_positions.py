"""Lines and units: the protocol counts UTF-16, gradsmith counts characters."""

from __future__ import annotations

import pytest

from gradsmith.server.positions import ProtocolPlace, TextLines

TEXT = "a = 'é'\nb = '😋😋'  # ñ\r\n\x0c\x85\u2028c\r\rd"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_every_place_comes_back(encoding: str) -> None:
    lines = TextLines(TEXT, encoding)
    for number, start in enumerate(lines.starts):
        for column in range(lines.stops[number] - start + 1):
            place = lines.place(number + 1, column)
            assert lines.offset(*place) == start + column


def test_lines_end_where_the_protocol_ends_them() -> None:
    lines = TextLines(TEXT)
    assert [lines.line(n) for n in range(6)] == ["a = 'é'", "b = '😋😋'  # ñ", "\x0c\x85\u2028c", "", "d", ""]


def test_columns_behind_wide_characters() -> None:
    lines = TextLines(TEXT)
    assert lines.place(2, 8) == ProtocolPlace(1, 10)
    assert TextLines(TEXT, "utf-8").place(2, 8) == ProtocolPlace(1, 14)
    assert lines.column(1, 10) == 8


def test_what_lies_beyond_is_the_end() -> None:
    lines = TextLines("ab\ncd")
    assert lines.offset(0, 99) == 2
    assert lines.offset(9, 0) == 5
    assert lines.replaced(ProtocolPlace(1, 99), ProtocolPlace(7, 0), "!") == "ab\ncd!"


def test_an_insertion_at_the_end_of_a_file_that_ends_with_a_wide_line() -> None:
    assert TextLines("😋😋\n").replaced(ProtocolPlace(1, 0), ProtocolPlace(1, 0), "x") == "😋😋\nx"
