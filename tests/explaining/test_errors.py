"""Every error that gradsmith explains is raised for real; a release of PyTorch that words one differently fails here, by name."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.explaining.entries import HEADINGS, Entry, entries

from .texts import IN_OTHER_WORDS, NONE, SECOND, THIRD

ENTRIES = pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.name)


def run(source: str, folder: Path) -> None:
    """As a file, so that the traceback shows its lines."""
    file = folder / "example.py"
    file.write_text(source)
    exec(compile(source, str(file), "exec"), {"__name__": "example"})


@ENTRIES
def test_its_example_raises_and_is_recognised(entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(Exception) as raised:
        run(entry.bad, tmp_path)
    text = "".join(traceback.format_exception(raised.value))
    alone = [] if entry.seen else [str(raised.value)]  # some need the traceback to be told from other code's
    for given in (raised.value, text, *alone):
        explained = gs.explain(given)
        assert (explained.name, explained.score) == (entry.name, 1.0)


@ENTRIES
def test_its_remedy_raises_nothing(entry: Entry, tmp_path: Path) -> None:
    run(entry.good, tmp_path)


@ENTRIES
def test_its_page_is_whole(entry: Entry) -> None:
    assert entry.title and not entry.title.endswith(".")
    assert all(entry.section(heading) for heading in HEADINGS)
    assert {rule.code for rule in rules().values()} >= set(entry.codes)
    for heading in HEADINGS:
        for sentence in entry.section(heading).replace("\n", " ").split(". "):
            assert len(sentence.split()) <= 45, sentence


def test_there_are_at_least_35() -> None:
    assert len(entries()) >= 35


@pytest.mark.parametrize(("name", "text"), [*IN_OTHER_WORDS, *SECOND, *THIRD], ids=lambda value: value[:40])
def test_cut_off_or_in_other_words_it_is_recognised(name: str, text: str) -> None:
    assert gs.explain(text).name == name


@pytest.mark.parametrize("text", NONE, ids=lambda text: text[:40])
def test_what_is_none_is_unknown(text: str) -> None:
    assert gs.explain(text).name == "unknown"
