"""Promises to those who build on gradsmith: the JSON schema, the public API, and words in the documents."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gradsmith.findings import Edit, Finding, Report, Reproduction, Skipped, Subject
from gradsmith.linting import lint, lint_source
from gradsmith.report import render
from tests.daily.public_api import described

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "schema" / "report-1.json").read_text())
KEPT: dict[str, Any] = json.loads((Path(__file__).parent / "public_api.json").read_text())
NOW = described()


def valid(text: str) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(json.loads(text))


def test_the_schema_is_one_itself_and_knows_every_field() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    parts = {"finding": Finding, "subject": Subject, "skipped": Skipped, "edit": Edit, "reproduction": Reproduction}
    for name, cls in parts.items():
        extra = {"fingerprint"} if cls is Finding else set()
        assert set(SCHEMA["definitions"][name]["properties"]) == {f.name for f in dataclasses.fields(cls)} | extra
    assert set(SCHEMA["properties"]) == set(Report().to_dict())


def test_reports_fit_the_schema() -> None:
    for report in (Report(), lint([str(ROOT / "examples" / "broken")]), lint_source("x = (", "a.py")):
        valid(render(report, "json"))
    worst = Finding(
        "m", "r", "GS1", "error", symptoms=(Finding("s", "r", "GS2", "info"),), evidence={"x": float("nan")}
    )
    subjects = [Subject(v, v, conditions={"vmap": "works"}) for v in ("verified", "refuted", "unverified", "skipped")]  # type: ignore[arg-type]
    valid(render(Report([worst], subjects, [Skipped("a", "b")]), "json"))


@pytest.mark.parametrize("change", ["drop a field", "change a type"])
def test_a_report_that_breaks_the_promise_does_not_fit(change: str) -> None:
    data = Report(subjects=[Subject("A", "verified")]).to_dict()
    if change == "drop a field":
        del data["subjects"][0]["reason"]
    else:
        data["subjects"][0]["assumptions"] = "one text"
    with pytest.raises(jsonschema.ValidationError):
        valid(json.dumps(data))


@pytest.mark.parametrize("name", KEPT["python"])
def test_what_is_public_stays(name: str) -> None:
    """Names may come, and parameters with defaults; none may go, change its place, or become required."""
    kept, now = KEPT["python"][name], NOW["python"][name]
    assert kept["kind"] == now["kind"]
    if kept["kind"] == "function":
        compatible(kept["parameters"], now["parameters"])
    if kept["kind"] == "class":
        assert [f for f in now["fields"] if f in kept["fields"]] == kept["fields"]
        assert set(kept["properties"]) <= set(now["properties"])
        for method, parameters in kept["methods"].items():
            compatible(parameters, now["methods"][method])


def compatible(kept: list[list[Any]], now: list[list[Any]]) -> None:
    positional = [p for p in kept if p[1] in ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")]
    assert now[: len(positional)] == positional
    assert all(parameter in now for parameter in kept)
    new = [p for p in now if p[0] not in [k[0] for k in kept]]
    assert all(default is not None or kind.startswith("VAR_") for _, kind, default in new)


def test_operations_commands_and_options_stay() -> None:
    assert set(KEPT["ops"]) <= set(NOW["ops"])
    for command, options in KEPT["command line"].items():
        assert set(options) <= set(NOW["command line"][command]), command


def test_the_comparison_sees_what_breaks_callers() -> None:
    kept = [["fn", "POSITIONAL_OR_KEYWORD", None], ["level", "KEYWORD_ONLY", "'standard'"]]
    compatible(kept, [*kept, ["new", "KEYWORD_ONLY", "False"]])
    for broken in (kept[:1], kept[1:], [*kept, ["new", "KEYWORD_ONLY", None]], [kept[0], [*kept[1][:2], "'deep'"]]):
        with pytest.raises(AssertionError):
            compatible(kept, broken)


def test_nothing_of_ours_opens_a_connection() -> None:
    """ "No network" by what Python says is connected to, while lint, rules and explain run."""
    code = (
        "import sys; sys.addaudithook(lambda event, args: sys.exit(99) if event.startswith('socket.') and event != "
        "'socket.__new__' else None); sys.argv = ['gradsmith', *sys.argv[1:]]; import gradsmith.cli; gradsmith.cli.main()"
    )
    for words in (["lint", "examples/broken"], ["rules"], ["explain", "inplace-grad"]):
        done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr


def test_the_documents_say_what_is_promised() -> None:
    security = (ROOT / "SECURITY.md").read_text()
    assert "No telemetry, no network" in security and "docs/security.md" in security
    assert "no telemetry, no network" in (ROOT / "README.md").read_text().lower()
    promises = (ROOT / "docs" / "promises.md").read_text()
    assert all(word in promises for word in ("schema/report-1.json", "Deprecation", "preview", "minor release"))
