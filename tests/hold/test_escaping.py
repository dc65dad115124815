"""Text of user code and file names, as every format shows it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsmith.findings import Finding, Report, Skipped, Subject
from gradsmith.report import FORMATS, render
from gradsmith.report.escaping import escaped, strict_unicode, without_commands

EVIL = "\x1b[2J\x9b31m\u202egone\u2066\ud800\udcff</script>&]]>\n::error::gone ##[error]gone\r"
TEXTS = st.text(st.characters(exclude_categories=()))


@given(TEXTS)
def test_what_is_shown_prints_and_is_shown_the_same_the_second_time(text: str) -> None:
    assert escaped(text).isprintable()
    assert escaped(escaped(text)) == escaped(text)


@given(TEXTS)
def test_text_that_prints_is_left_alone(text: str) -> None:
    assert (escaped(text) == text) == text.isprintable()


def test_each_kind_is_shown_by_its_number() -> None:
    assert escaped("\x1b\x9b\u202e\U000e0041\udcff\n") == "\\x1b\\x9b\\u202e\\U000e0041\\xff\\n"
    assert escaped("\tx\n", "\n\t") == "\tx\n"


@given(TEXTS)
def test_json_text_is_unicode(text: str) -> None:
    json.loads(json.dumps(strict_unicode({"a": [text]}))[1:-1].join("{}"))
    json.dumps(strict_unicode([text]), ensure_ascii=False).encode()


def test_no_line_is_a_workflow_command() -> None:
    told = without_commands("fine x[::2] a.py::F\n  ::error::x\n##[error]x")
    assert told == "fine x[::2] a.py::F\n  \\x3a:error::x\n\\x23#[error]x"


PATH = f"/nowhere/{EVIL}.py".replace("\ud800", "")  # half a surrogate that is no byte: no file can be called that


@pytest.mark.parametrize("format", FORMATS)
def test_a_report_full_of_escapes(format: str) -> None:
    finding = Finding(EVIL, "return-count", "GS101", "error", EVIL, EVIL, PATH, 1, 0, snippet=EVIL, advice=EVIL)
    subject = Subject(f"{EVIL}2", "unverified", EVIL, PATH, 1, inputs_code=EVIL, conditions={EVIL: EVIL})
    report = Report([finding], [subject], [Skipped(PATH, EVIL)], 1, 1, [EVIL])
    text = render(report, format)
    text.encode()
    strange = {c for c in text if not c.isprintable() and c not in "\n\t"}
    assert not strange
    if format == "junit":
        xml.fromstring(text)
    if format == "html":
        assert "gone</script>" not in text
    if format in ("full", "concise"):
        assert not any(line.lstrip().startswith("::") or "##[" in line for line in text.split("\n"))
    if format == "github":
        assert [line.partition(" ")[0] for line in text.split("\n") if line.startswith("::")] == [
            "::error",
            "::warning",
            "::warning",
        ]
