"""A report says at how many other examples the gradient is right, what it assumes, and what was not tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType

import pytest

import gradsmith as gs
from gradsmith.catalog import find
from gradsmith.findings import Report, Subject
from gradsmith.lab.explore import explorer
from gradsmith.lab.explore.budget import Budget
from gradsmith.report import render

RULES = ["wrong-gradient", "value-dependent", "shape-dependent", "option-dependent", "assumes"]
SYMMETRIC = find("assumes").bad
RIGHT = find("assumes").good
Load = Callable[[str], ModuleType]


def checked(module: ModuleType, name: str = "QuadraticForm", **options: object) -> Report:
    return gs.check(getattr(module, name), select=RULES, **options)  # type: ignore[arg-type]


def test_a_right_gradient_is_told_with_the_number_of_other_examples(load: Load) -> None:
    report = checked(load(RIGHT))
    explored = report.subjects[0].explored
    assert explored["examples"] > 5
    assert explored["values"] == len(explored["steps"]["values"]) > 0
    assert explored["seed"] == 0
    assert f"right at your inputs and {explored['examples']} other examples, with " in str(report)
    assert f"verified: right at your inputs and {explored['examples']} other examples, with " in render(
        report, "concise"
    )
    assert report.subjects[0].assumptions == ()


def test_only_examples_that_were_judged_right_are_counted(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = []

    def counted(*args: object) -> object:
        trial = examined(*args)  # type: ignore[arg-type]
        statuses.append(trial.status)
        return trial

    examined = explorer.examined
    monkeypatch.setattr(explorer, "examined", counted)
    explored = checked(load(SYMMETRIC)).subjects[0].explored
    assert 0 < explored["examples"] <= statuses.count("right") < len(statuses)


def test_an_assumption_stands_in_the_subject_and_in_the_verdict_line(load: Load) -> None:
    report = checked(load(SYMMETRIC))
    assert report.subjects[0].verdict == "verified"
    assert report.subjects[0].assumptions == ("'matrix' is symmetric",)
    assert "; assumes: 'matrix' is symmetric" in str(report)
    assert json.loads(report.to_json())["subjects"][0]["assumptions"] == ["'matrix' is symmetric"]


def test_quick_explores_nothing_and_says_so(load: Load) -> None:
    report = checked(load(SYMMETRIC), level="quick")
    assert report.subjects[0].explored == {}
    assert "right at your inputs only: level quick tries no others" in str(report)


def test_both_survive_the_way_from_a_process_of_its_own(load: Load) -> None:
    report = checked(load(SYMMETRIC), isolate=True)
    assert report.subjects[0].assumptions == ("'matrix' is symmetric",)
    assert report.subjects[0].explored["examples"] > 5
    assert Report.from_dict(report.to_dict()).subjects == report.subjects


def test_reports_written_before_these_fields_are_still_read() -> None:
    told = Report(subjects=[Subject("Old", "verified")]).to_dict()
    del told["subjects"][0]["assumptions"], told["subjects"][0]["explored"]
    assert Report.from_dict(told).subjects == [Subject("Old", "verified")]


def test_several_examples_of_one_subject_are_told_together(load: Load) -> None:
    twice = SYMMETRIC.replace('{"QuadraticForm": example}', '{"QuadraticForm": [example, lambda: example()]}')
    one, two = (checked(load(source)).subjects[0] for source in (SYMMETRIC, twice))
    assert two.explored["examples"] == 2 * one.explored["examples"]
    assert two.explored["values"] == one.explored["values"]
    assert two.assumptions == one.assumptions


def test_what_the_budget_did_not_allow_is_told(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradsmith.lab.lab.budget_of", lambda level, cost: Budget(1e-3, 8192, 4))
    report = checked(load(RIGHT))
    explored = report.subjects[0].explored
    assert explored["budget spent"]
    beyond = [line for line in explored["left out"] if line.endswith(": the budget of 4 examples was spent")]
    assert len(beyond) > 5
    assert f"Not tried: {len(beyond)} steps, such as with" in str(report)
    assert "Not tried" not in render(report, "concise")


def test_a_step_that_was_taken_is_not_listed_as_left_out(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradsmith.lab.lab.budget_of", lambda level, cost: Budget(1e-3, 8192, 4))
    explored = checked(load(RIGHT)).subjects[0].explored
    taken = {words for steps in explored["steps"].values() for words in steps}
    assert taken and not taken & {line.rpartition(": ")[0] for line in explored["left out"]}


def test_what_forward_rejected_is_listed(load: Load) -> None:
    picky = RIGHT.replace("        ctx.save", "        assert x.abs().max() < 999, 'too large'\n        ctx.save")
    report = checked(load(picky))
    assert any("too large" in line for line in report.subjects[0].explored["rejected"])
    assert report.subjects[0].measured["rejected variations"] == report.subjects[0].explored["rejected"]


def test_guessed_inputs_are_not_called_yours(load: Load) -> None:
    subject = Subject("Swish", "verified", inputs_from="guessed", explored={"examples": 1, "sizes": 1, "steps": {}})
    told = " ".join(str(Report(subjects=[subject])).split())
    assert "right at the guessed inputs and 1 other example, with 1 change of size" in told


def test_a_refuted_subject_is_not_called_right_anywhere() -> None:
    subject = Subject("Swish", "refuted", "shape-dependent", explored={"examples": 9, "sizes": 3, "steps": {}})
    assert "right at" not in str(Report(subjects=[subject]))
