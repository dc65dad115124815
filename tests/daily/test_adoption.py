"""Taking gradsmith up in a project that exists: a baseline, less than everything, and what it writes for you."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradsmith.baseline import Baseline, write
from gradsmith.catalog import rules
from gradsmith.checking.narrowing import changed, last_failed, remember_failed
from gradsmith.checking.subjects import wanted
from gradsmith.config import load
from gradsmith.findings import Finding, GradsmithError, Report, Subject
from gradsmith.linting import lint
from gradsmith.report import render
from gradsmith.writing.comments import declarations
from gradsmith.writing.inputs import declared_inputs
from tests.daily import projects

BAD = rules()["inplace-grad"].bad


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradsmith", *arguments]
    cache = {"GRADSMITH_CACHE_DIR": str(folder / ".cache")}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **cache, **environment}, capture_output=True, text=True, check=False
    )


# --- the baseline


def test_a_baseline_knows_findings_whose_lines_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ops.py"
    file.write_text(BAD)
    write(lint(["ops.py"]), "known.json")
    known = Baseline.read("known.json")
    file.write_text("# a\n# new\n# head\n" + BAD)
    report = known.without_known(lint(["ops.py"]))
    assert report.findings == [] and report.notes == ["1 finding known from the baseline, not counted"]
    # The same line a second time is a new finding, and so is another one.
    file.write_text(BAD.replace("        grad_output.mul_(2)\n", "        grad_output.mul_(2)\n" * 2))
    assert len(known.without_known(lint(["ops.py"])).findings) == 1
    file.write_text(BAD.replace("mul_(2)", "mul_(3)"))
    assert len(known.without_known(lint(["ops.py"])).findings) == 1


def test_a_subject_that_got_worse_counts() -> None:
    known = Baseline(subjects={"ops.py::A": "unverified", "ops.py::B": "refuted"})
    before = [Subject("A", "unverified", path="ops.py"), Subject("B", "refuted", path="ops.py")]
    assert [s.known for s in known.without_known(Report(subjects=before)).subjects] == [True, True]
    now = [
        Subject("A", "refuted", path="ops.py"),
        Subject("B", "unverified", path="ops.py"),
        Subject("C", path="ops.py"),
    ]
    report = known.without_known(Report(subjects=now))
    assert [s.known for s in report.subjects] == [False, True, False]
    assert "B (known)" in render(report, "full")


def test_only_new_findings_make_lint_fail(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(BAD)
    assert run(tmp_path, "lint", "ops.py").returncode == 1
    said = run(tmp_path, "baseline", "ops.py", "--lint-only")
    assert said.stdout == "gradsmith-baseline.json: 1 finding and 0 subjects that are not verified\n"
    assert 'baseline = "gradsmith-baseline.json"' in said.stderr
    (tmp_path / "pyproject.toml").write_text('[tool.gradsmith]\nbaseline = "gradsmith-baseline.json"\n')
    assert run(tmp_path, "lint", "ops.py").returncode == 0
    (tmp_path / "new.py").write_text(BAD.replace("class ", "class New"))
    said = run(tmp_path, "lint", ".")
    assert said.returncode == 1 and "new.py" in said.stdout and "ops.py" not in said.stdout


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99, "findings": [], "subjects": {}}'])
def test_what_is_not_a_baseline_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(GradsmithError, match="baseline"):
        Baseline.read(tmp_path / "b.json")


# --- [tool.gradsmith]


def configured(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(f"[tool.gradsmith]\n{text}\n")
    return folder


def test_what_is_excluded_is_not_found_in_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    projects.write(tmp_path, {"src/ops.py": BAD, "vendor/deep/ops.py": BAD, "src/ops_generated.py": BAD})
    configured(tmp_path, 'exclude = ["vendor", "*_generated.py"]')
    monkeypatch.chdir(tmp_path)
    config = load()
    assert [f.path for f in lint(["."], config=config).findings] == ["./src/ops.py"]
    assert [item.path for item in wanted(["."], config)] == ["./src/ops.py"]
    # A file that is named is wanted.
    assert len(lint(["vendor/deep/ops.py"], config=config).findings) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('levle = "quick"', "did you mean 'level'?"),
        ('level = "quik"', "did you mean 'quick'?"),
        ('seed = "1"', "seed must be a whole number, not '1'"),
        ("seed = true", "seed must be a whole number, not True"),
        ("exclude = [1]", "exclude must be a list of texts, not of 1"),
        ('surrogates = ["pkg.*[clap]"]', "did you mean 'clip'?"),
        ('surrogates = "pkg.*"', "surrogates must be a list of texts, not 'pkg.*'"),
    ],
)
def test_a_mistake_is_answered_from_the_right_list(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(GradsmithError) as caught:
        load(configured(tmp_path, text))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lint", "--level", "quick"], "lint has no option --level; check and record and baseline have it"),
        (["check", "--statistics", "x.py"], "check has no option --statistics; lint has it"),
        (["check", "--sede", "1", "x.py"], "check has no option --sede; did you mean '--seed'?"),
        (["check", "ops.py::Clap"], "did you mean 'Clip'?"),
        (["chek"], "did you mean 'check'?"),
    ],
)
def test_a_hint_comes_from_the_right_list(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(projects.functions(["Clip", "Other"]))
    done = run(tmp_path, *arguments)
    assert done.returncode == 2 and said in done.stderr


def test_lint_and_check_read_surrogates_alike(tmp_path: Path) -> None:
    source = rules()["ignored-grad-output"].bad
    folder = projects.write(tmp_path, {"pkg/__init__.py": "", "pkg/aux.py": source})
    config = load(configured(folder, 'surrogates = ["pkg.aux.*[aux-loss]"]'))
    assert lint([str(folder / "pkg")]).findings and not lint([str(folder / "pkg")], config=config).findings
    other = load(configured(folder, 'surrogates = ["other.*[aux-loss]"]'))
    assert lint([str(folder / "pkg")], config=other).findings


# --- what it writes


def test_comments_declare_surrogates_and_change_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "lib.py"
    file.write_text(projects.spikes().replace("class Atan", "@staticmethod\nclass Atan"))
    names = list(projects.SLOPES)
    found = [
        Finding("m", "r", "c", "warning", function=name, path=str(file), evidence={"surrogate": "straight-through"})
        for name in names
    ]
    (change,) = declarations(Report(findings=found))
    change.write()
    text = file.read_text()
    assert text.count("# gradsmith: surrogate[straight-through]\n") == change.count == len(names) == 15
    assert "# gradsmith: surrogate[straight-through]\n@staticmethod\nclass Atan" in text
    assert text.replace("# gradsmith: surrogate[straight-through]\n", "") == change.before.decode()
    assert declarations(Report(findings=found)) == []  # they are declared now


GUESSED = [
    Subject("A", "verified", inputs_from="guessed", inputs_code="(torch.randn(3, requires_grad=True), 2)"),
    Subject("B", "refuted", inputs_from="guessed", inputs_code="(torch.randn(4, requires_grad=True),)"),
    Subject("C", "verified", inputs_from="declared", inputs_code="(torch.randn(5, requires_grad=True),)"),
]


@pytest.mark.parametrize(
    "before",
    [
        "import torch\nx = 1\n",
        "from torch import nn\n",
        'import torch\n\ngradsmith_inputs = {"Z": lambda: (1,)}\nx = 2\n',
        'import torch\n\ngradsmith_inputs = {\n    "Z": lambda: (1,)\n}\n',
        "import torch\n\ngradsmith_inputs = {}\n",
        'import torch\r\n\r\ngradsmith_inputs = {\r\n    "Z": lambda: (1,),\r\n}\r\n',
    ],
)
def test_guessed_inputs_are_written_as_one_table(before: str, tmp_path: Path) -> None:
    from dataclasses import replace

    file = tmp_path / "ops.py"
    file.write_bytes(before.encode())
    report = Report(subjects=[replace(s, path=str(file)) for s in GUESSED])
    (change,) = declared_inputs(report)
    change.write()
    names: dict[str, object] = {}
    exec(file.read_text(), names)
    table = names["gradsmith_inputs"]
    assert isinstance(table, dict)
    assert set(table) == {"A", "B", *(["Z"] if '"Z"' in before else [])}
    assert table["A"]()[0].shape == (3,) and table["A"]()[1] == 2
    assert file.read_bytes().count(b"gradsmith_inputs") == 1
    assert declared_inputs(report) == []  # nothing is written twice


def test_a_table_that_is_computed_is_left_alone(tmp_path: Path) -> None:
    from dataclasses import replace

    file = tmp_path / "ops.py"
    file.write_text("import torch\ngradsmith_inputs = make()\n")
    assert declared_inputs(Report(subjects=[replace(s, path=str(file)) for s in GUESSED])) == []


# --- less than everything


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "pkg/__init__.py": "",
        "pkg/base.py": "TWO = 2\n",
        "pkg/middle.py": "from .base import TWO\n",
        "pkg/a.py": "from pkg.middle import TWO\n" + projects.functions(["A"]),
        "pkg/b.py": projects.functions(["B"]),
        "c.py": "import pkg.b\n" + projects.functions(["C"]),
    }
    projects.write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], check=True)
    return tmp_path


def names(work: list[object]) -> list[str]:
    return sorted(name for item in work for name, _ in item.subjects)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("touched", "left"),
    [(None, []), ("pkg/base.py", ["A"]), ("pkg/b.py", ["B", "C"]), ("pkg/a.py", ["A"]), ("new.py", ["New"])],
)
def test_what_git_says_changed_and_what_imports_it(touched: str | None, left: list[str], repository: Path) -> None:
    if touched:
        text = projects.functions(["New"]) if touched == "new.py" else (repository / touched).read_text() + "\n"
        (repository / touched).write_text(text)
    assert names(changed(wanted(["."]), "HEAD")) == left


def test_git_is_quoted_where_it_refuses(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(GradsmithError, match=r"git, which says: .*nowhere"):
        changed(wanted(["."]), "nowhere")
    elsewhere = tmp_path_factory.mktemp("plain")
    (elsewhere / "ops.py").write_text(projects.functions(["A"]))
    with pytest.raises(GradsmithError, match="not a git repository"):
        changed(wanted([str(elsewhere)]), "HEAD")


def test_what_failed_last_is_remembered_until_it_is_verified(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(repository / ".cache"))
    work = wanted(["."])
    assert last_failed(work) == work  # nothing is known
    verdicts = {"A": "verified", "B": "refuted", "C": "unverified"}
    remember_failed(work, Report(subjects=[Subject(n, v) for n, v in verdicts.items()]))  # type: ignore[arg-type]
    failed = last_failed(work)
    assert names(failed) == ["B", "C"]  # type: ignore[arg-type]
    only_b = [item for item in failed if item.subjects[0][0] == "B"]
    remember_failed(only_b, Report(subjects=[Subject("B", "verified")]))
    assert names(last_failed(work)) == ["C"]  # type: ignore[arg-type]


# --- all of it once, on real Functions


@pytest.mark.deep
def test_a_library_of_15_surrogates_is_quiet_after_one_line(tmp_path: Path) -> None:
    projects.write(tmp_path, {"lib/__init__.py": "", "lib/surrogate.py": projects.spikes()})
    assert run(tmp_path, "check", "lib", "--level", "quick").returncode == 1
    configured(tmp_path, 'surrogates = ["lib.surrogate.*"]')
    done = run(tmp_path, "check", "lib")
    assert done.returncode == 0, done.stdout
    assert len(done.stdout.splitlines()) <= 20
    assert done.stdout.endswith("15 verified\n")


@pytest.mark.deep
def test_the_command_writes_and_then_all_is_verified(tmp_path: Path) -> None:
    projects.write(tmp_path, {"lib.py": projects.spikes()})
    done = run(tmp_path, "check", "lib.py", "--level", "quick", "--declare-surrogates", "--write-inputs")
    assert done.stderr.splitlines() == ["declared 15 surrogates in lib.py", "wrote the inputs of 15 subjects in lib.py"]
    done = run(tmp_path, "check", "lib.py", "--level", "quick", "--format", "json")
    subjects = json.loads(done.stdout)["subjects"]
    assert done.returncode == 0
    assert {(s["verdict"], s["gradient"], s["inputs_from"]) for s in subjects} == {
        ("verified", "surrogate", "declared")
    }


@pytest.mark.deep
def test_the_second_run_never_imports_torch(tmp_path: Path) -> None:
    for number in range(5):
        names = [f"F{number}{letter}" for letter in "abcdefghij"]
        projects.write(tmp_path, {f"pkg/ops{number}.py": projects.functions(names)})
    first = run(tmp_path, "check", "pkg", "--level", "quick")
    assert first.returncode == 0 and first.stdout.endswith("50 verified\n")
    # Neither torch nor the process that imports it can be had.
    code = (
        "import sys; sys.modules['torch'] = None; import gradsmith.checking.paths as paths; paths.started = None\n"
        "sys.argv = ['gradsmith', 'check', 'pkg', '--level', 'quick']; import gradsmith.cli; gradsmith.cli.main()"
    )
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path / ".cache")}
    second = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "50 verdicts from an earlier run" in second.stdout, second.stderr
    assert second.stdout.endswith("50 verified\n") and second.returncode == 0
