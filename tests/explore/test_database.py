"""An example that failed once is tried first in later runs, until it has not failed twice in a row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from forks import Forks

import gradsmith as gs
from gradsmith.findings import Report
from gradsmith.lab import Lab, Settings, resolve
from gradsmith.lab.explore import database, explorer
from gradsmith.lab.explore.budget import Budget
from gradsmith.lab.explore.move import as_json
from gradsmith.lab.explore.moves.sizes import Resize
from gradsmith.lab.explore.moves.values import Redraw, Transform
from gradsmith.lab.explore.replay import _known, from_json
from gradsmith.lab.explore.resizing import Size
from gradsmith.lab.explore.trial import Trial
from gradsmith.lab.subject.binding import bound

# Right for the declared inputs, which are all positive, and wrong for others.
BROKEN = """
import torch


class Absolute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x.abs() * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, grad_output * x


def example():
    x = torch.tensor([[0.3, 1.2], [0.7, 2.1]], dtype=torch.float64, requires_grad=True)
    return x, torch.tensor([[0.4, -1.3], [0.8, 1.7]], dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"Absolute": example}
"""
MENDED = BROKEN.replace(
    "return grad_output * scale, grad_output * x", "return grad_output * scale * x.sign(), grad_output * x.abs()"
)
RULES = ["wrong-gradient", "value-dependent", "shape-dependent", "assumes"]
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty at the start of each test, and at the same place: who checks in other processes can go on doing so."""
    shutil.rmtree(cache_folder, ignore_errors=True)
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(cache_folder))
    return cache_folder / "failures"


def checked(folder: Path, source: str, **options: object) -> Report:
    """As a user does: the same file, edited in between, in another process each time."""
    file = folder / "absolute.py"
    file.write_text(source, encoding="utf-8")
    return gs.check_paths(file, select=RULES, **options)


def kept(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/*.json"))


def found(report: Report) -> list[tuple[str, str, str]]:
    return [(f.rule, str(f.severity), f.message) for f in report.findings]


def lab_on(load: Load, source: str = BROKEN) -> Lab:
    module = load(source)
    target, arguments = bound(resolve(module.Absolute), module.example(), {})
    return Lab(target, arguments, Settings(0))


def test_a_failing_example_is_kept_as_moves(tmp_path: Path, cache: Path) -> None:
    report = checked(tmp_path, BROKEN)
    moves = [f.evidence["moves"] for f in report.findings if "moves" in f.evidence]
    assert moves
    stored = [json.loads(file.read_bytes()[32:])["moves"] for file in kept(cache)]
    assert all(one in stored for one in moves)


def test_it_is_tried_first_next_time_and_the_report_says_so(tmp_path: Path, cache: Path) -> None:
    first, second = checked(tmp_path, BROKEN), checked(tmp_path, BROKEN)
    assert first.subjects[0].explored["earlier failures"] == []
    told = second.subjects[0].explored["earlier failures"]
    assert told and all(line.endswith(": it still fails") for line in told)
    assert f"Tried first, because it failed in an earlier run: {told[0]}" in " ".join(str(second).split())


def test_what_was_kept_changes_no_finding_and_no_verdict(tmp_path: Path, cache: Path) -> None:
    first, second = checked(tmp_path, BROKEN), checked(tmp_path, BROKEN)
    assert found(first) == found(second)
    assert first.subjects[0].verdict == second.subjects[0].verdict
    assert first.subjects[0].explored["examples"] == second.subjects[0].explored["examples"]


@pytest.mark.parametrize("cost", [1e-3, 4e-3, 16e-3, 64e-3])
def test_what_was_kept_takes_no_run_from_other_examples(
    load: Load, cache: Path, monkeypatch: pytest.MonkeyPatch, cost: float
) -> None:
    """Also where the budget ends the exploration, as it does for a subject that is measured on a busy machine."""
    monkeypatch.setattr("gradsmith.lab.lab.cost_of", lambda run: cost)
    lab = lab_on(load)
    first = explorer.explored(lab)
    assert kept(cache) or not first.found
    second = explorer.explored(Lab(lab.target, lab.arguments, lab.settings))
    assert len(second.replayed) == len(kept(cache))
    assert second.right == first.right
    assert second.judged == first.judged
    assert [d.trial.moves for d in second.found] == [d.trial.moves for d in first.found]


def test_a_mended_function_is_tried_on_its_old_failure_until_it_was_right_twice(tmp_path: Path, cache: Path) -> None:
    checked(tmp_path, BROKEN)
    assert kept(cache)
    for _ in range(2):
        report = checked(tmp_path, MENDED)
        assert report.ok
        assert all(line.endswith(": it is right now") for line in report.subjects[0].explored["earlier failures"])
        assert report.subjects[0].explored["earlier failures"]
    assert kept(cache) == []
    assert checked(tmp_path, MENDED).subjects[0].explored["earlier failures"] == []


def test_one_that_fails_again_in_between_is_kept(tmp_path: Path, cache: Path) -> None:
    checked(tmp_path, BROKEN)
    before = kept(cache)
    for source in (MENDED, BROKEN, MENDED):
        checked(tmp_path, source)
    assert kept(cache) == before


def test_a_kept_failure_is_found_where_the_budget_would_end_before_it(
    load: Load, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(load)
    first = explorer.explored(lab)
    assert first.found
    monkeypatch.setattr(explorer._Explorer, "_covering", lambda self, sorts: [])
    monkeypatch.setattr("gradsmith.lab.lab.budget_of", lambda level, cost: Budget(1e-3, 8192, 4))
    again = Lab(lab.target, lab.arguments, lab.settings)
    later = explorer.explored(again)
    assert {frozenset(d.trial.moves) for d in later.found} & {frozenset(d.trial.moves) for d in first.found}


def test_corrupt_and_foreign_files_are_ignored(tmp_path: Path, cache: Path) -> None:
    checked(tmp_path, BROKEN)
    (one, *_) = kept(cache)
    one.write_bytes(b"no such thing")
    from gradsmith.storage import write_whole

    for number, text in enumerate(
        ("[]", "{", '{"moves": 3}', '{"moves": [{"move": "NoSuchMove"}], "seed": 0, "right": 0, "example": 0}')
    ):
        write_whole(one.parent / f"{number}.json", text.encode())
    assert found(checked(tmp_path, BROKEN)) == found(checked(tmp_path, BROKEN))


def test_moves_that_are_not_planned_any_more_are_not_tried(load: Load, cache: Path) -> None:
    lab = lab_on(load, MENDED)
    database.keep(lab, [(Trial((Transform("gone", 0, "negated"),), "wrong"), 3)])
    assert len(kept(cache)) == 1
    assert database.failures(lab, {Transform("x", 0, "negated")}) == []


def test_a_subject_keeps_at_most_32(load: Load, cache: Path) -> None:
    lab = lab_on(load)
    for number in range(40):
        database.keep(lab, [(Trial((Redraw(f"x{number}", 0),), "wrong"), 3)])
    assert len(kept(cache)) == 32


def test_another_example_and_another_file_have_failures_of_their_own(load: Load, cache: Path) -> None:
    lab, elsewhere = lab_on(load), lab_on(load)
    move = Redraw("x", 0)
    database.keep(lab, [(Trial((move,), "wrong"), 3)])
    assert [f.moves for f in database.failures(lab, {move})] == [(move,)]
    assert database.failures(elsewhere, {move}) == []
    lab.number = 1
    assert database.failures(lab, {move}) == []


def test_without_a_cache_folder_everything_works(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "file"))
    assert explorer.explored(lab_on(load)).found


def test_a_class_without_a_file_is_not_kept(cache: Path) -> None:
    space: dict[str, object] = {}
    exec(BROKEN, space)
    gs.check(space["Absolute"], *space["example"](), select=RULES)  # type: ignore[operator]
    assert kept(cache) == []


def test_every_move_of_an_exploration_survives_json(load: Load) -> None:
    planned, alone = explorer._Explorer(lab := lab_on(load), explorer.Exploration())._planned()
    moves = [move for sort in (*planned, alone) for move in sort]
    assert {m.kind for m in moves} >= {"values", "size"}
    assert [from_json(json.loads(json.dumps(as_json(m)))) for m in moves] == moves
    assert lab.level == "standard"


def test_nested_fields_come_back_as_what_they_were() -> None:
    move = Resize("x", Size(4, ((0, 1, 2), (1, 0, 1)), ((2, 1),), ends=(3,)), 7)
    assert from_json(json.loads(json.dumps(as_json(move)))) == move


def test_each_class_of_move_has_a_name_of_its_own() -> None:
    from gradsmith.lab.explore.move import Move

    def below(cls: type) -> set[type]:
        return {child for c in cls.__subclasses__() for child in (c, *below(c))}

    _known()
    mine = {c for c in below(Move) if c.__module__.startswith("gradsmith.")}
    assert len({c.__name__ for c in mine}) == len(mine)


def test_the_printed_snippet_fails_for_the_broken_function_and_passes_for_the_mended_one(
    tmp_path: Path, cache: Path, forks: Forks
) -> None:
    report = checked(tmp_path, BROKEN)
    snippets = [f.reproduce.snippet for f in report.findings if f.reproduce and "moves" in f.evidence]
    assert snippets
    for snippet in snippets:
        (tmp_path / "absolute.py").write_text(BROKEN, encoding="utf-8")
        assert forks.run("-c", snippet).returncode == 1
        (tmp_path / "absolute.py").write_text(MENDED, encoding="utf-8")
        assert forks.run("-c", snippet).returncode == 0


def test_the_same_seed_finds_the_same(load: Load, cache: Path) -> None:
    module = load(BROKEN)
    one, two = (gs.check(module.Absolute, select=RULES, seed=5) for _ in range(2))
    assert found(one) == found(two)
    assert one.subjects[0].explored["seed"] == 5
