"""gradsmith names each broken file's rule, and says nothing against the gallery.

Rules that are not in the catalogue yet, and lenses that do not work yet, are skipped by name, never passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from gallery_files import GALLERY, broken_files, cases, expected_rules, gallery_files, load

gs = pytest.importorskip("gradsmith")
catalog = pytest.importorskip("gradsmith.catalog")

EXPECTATIONS = [(path, rule) for path in broken_files() for rule in expected_rules(path)]
LENSES = {name: rule.lenses for name, rule in catalog.rules().items()}
SUBJECTS = sorted({(case.path, case.name) for case in cases()})


def named(findings: Iterable[Any]) -> Iterator[str]:
    """The rules of the findings and of everything folded under them."""
    for finding in findings:
        yield finding.rule
        yield from named(finding.symptoms)


def needs(name: str) -> Any:
    """A name of the public surface, or a skip while it is being built."""
    try:
        return getattr(gs, name)
    except (AttributeError, ImportError, gs.GradsmithError):
        pytest.skip(f"gradsmith.{name} does not exist yet")


def checked(path: Path) -> list[Any]:
    """What `check` finds in every subject the file declares inputs for, by the declared inputs."""
    check, module, found = needs("check"), load(path), []
    torch.manual_seed(0)
    for name, makers in module.gradsmith_inputs.items():
        for make in makers if isinstance(makers, list) else [makers]:
            found += check(getattr(module, name), *make()).findings
    return found


def test_which_expected_rules_are_still_missing() -> None:
    missing = sorted({rule for _, rule in EXPECTATIONS} - set(LENSES))
    if missing:
        pytest.skip(f"{len(missing)} not in the catalogue yet: {', '.join(missing)}")


@pytest.mark.parametrize(
    ("path", "rule"),
    [(path, rule) for path, rule in EXPECTATIONS if rule in LENSES],
    ids=lambda v: v.stem if isinstance(v, Path) else v,
)
def test_the_rule_is_named(path: Path, rule: str) -> None:
    """By lint, or else by check: what a user sees who runs either on the file."""
    seen = set()
    if "lint" in LENSES[rule]:
        seen |= set(named(needs("lint_source")(path.read_text(), path=str(path)).findings))
    if "check" in LENSES[rule] and rule not in seen:
        seen |= set(named(checked(path)))
    if LENSES[rule] == ("profile",):
        pytest.skip(f"{rule} is seen by profile only")
    assert rule in seen


@pytest.mark.parametrize("path", gallery_files(), ids=lambda p: p.stem)
def test_lint_has_nothing_against_the_gallery(path: Path) -> None:
    report = needs("lint_source")(path.read_text(), path=str(path))
    assert [f"{f.rule} line {f.line}: {f.message}" for f in report.findings if f.severity != "info"] == []


def test_lint_of_the_whole_gallery_reads_every_file() -> None:
    report = needs("lint")([str(GALLERY)])
    assert not report.skipped
    assert not report.errors


@pytest.mark.parametrize("level", ["quick", pytest.param("standard", marks=pytest.mark.deep)])
@pytest.mark.parametrize(("path", "name"), SUBJECTS, ids=lambda v: v.stem if isinstance(v, Path) else v)
def test_check_has_nothing_against_the_gallery(path: Path, name: str, level: str) -> None:
    check, module = needs("check"), load(path)
    makers = module.gradsmith_inputs[name]
    for make in makers if isinstance(makers, list) else [makers]:
        report = check(getattr(module, name), *make(), level=level)
        # What PyTorch itself does wrong (mark_dirty under compile, say) is said, and is nothing against the Function.
        against = [f for f in report.findings if f.severity != "info" and f.blame == "user"]
        assert [f"{f.rule}: {f.message}" for f in against] == []
        assert [f"{s.verdict}: {s.reason}" for s in report.subjects if s.verdict != "verified"] == []
