"""Rules of other packages: `acme-rules` is built and installed by pip, those that go wrong are written as installed.

Everything runs in processes of its own, with the folder of the installation on their path.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import gradsmith
from gradsmith import rule_packages

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).parent / "rule_packages" / "acme"
RULES = sorted(path.stem for path in (SOURCE / "acme" / "gradsmith_rules").glob("[!_]*.py"))


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed acme-rules."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-build-isolation", "--no-deps", "--target", str(folder), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


Python = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Python:
    """`run(folders, *words)`: `python *words` with these folders on the path, in a folder without anything else."""
    here = tmp_path / "here"
    here.mkdir()

    def start(folders: list[Path], *words: str, **options: object) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(str(folder) for folder in (Path(gradsmith.__file__).parents[1], *folders))
        env = {**os.environ, "PYTHONPATH": path, "GRADSMITH_CACHE_DIR": str(tmp_path / "cache"), "NO_COLOR": "1"}
        settings = {"cwd": here, "env": env, **options}
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload]
        assert "Traceback" not in done.stderr, done.stderr
        return done  # type: ignore[no-any-return]

    return start


def lint(run: Python, folders: list[Path], text: str, *words: str) -> dict[str, object]:
    """What `gradsmith lint` says of a text, as JSON."""
    done = run(folders, "-m", "gradsmith", "lint", "-", "--format", "json", *words, input=text)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def names(report: Mapping[str, object]) -> set[str]:
    return {f["rule"] for f in report["findings"]}  # type: ignore[attr-defined]


def example(rule: str, which: str = "BAD") -> str:
    """An example of one of acme's rules."""
    module: dict[str, str] = {}
    text = (SOURCE / "acme" / "gradsmith_rules" / f"{rule}.py").read_text()
    exec(text[text.index("BAD = ") : text.index("\n\n\ndef ", text.index("GOOD = "))], module)
    return module[which]


def write_installed(
    folder: Path, distribution: str, entry: str, modules: Mapping[str, str], version: str = "1.0"
) -> Path:
    """What pip leaves behind of a package: its modules, and the folder that describes it."""
    package = distribution.replace("-", "_")
    for name, text in {"__init__": "", **modules}.items():
        file = folder / package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for old in folder.glob(f"{package}-*.dist-info/*"):
        old.unlink()
    for old in folder.glob(f"{package}-*.dist-info"):
        old.rmdir()
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[gradsmith.rules]\n{entry} = {package}\n")
    return folder


def a_rule(code: str = "BETA101", more: str = "", without: str = "") -> str:
    """A rule that finds every Function."""
    lines = {
        "CODE": f'CODE = "{code}"',
        "SEVERITY": 'SEVERITY = "warning"',
        "BAD": 'BAD = "x = 1"',
        "GOOD": 'GOOD = "x = 2"',
        "lint": 'def lint(function):\n    yield function.at(function.node, "Here is one.")',
    }
    return "\n".join(['"""finds every Function."""', *(v for k, v in lines.items() if k != without), more, ""])


# What a package can do.


def test_its_rules_are_listed_as_a_family_of_their_own(acme: Path, run: Python) -> None:
    done = run([acme], "-m", "gradsmith", "rules")
    section = done.stdout.partition("\nacme (ACMExx): How gradients are written at Acme\n")[2]
    assert re.findall(r"^  (ACME\d+)  (\S+)", section, re.M) == [
        ("ACME101", "exp-again"),
        ("ACME102", "bare-name"),
        ("ACME103", "exp-in-backward"),
        ("ACME104", "unbounded-output"),
        ("ACME105", "many-operations"),
    ]
    assert re.findall(r"^  (ACME\d+) .* \[(\w+)\]$", section, re.M) == [
        ("ACME102", "preview"),
        ("ACME103", "deprecated"),
    ]
    assert done.stderr == ""


def test_explain_shows_its_page_state_and_origin(acme: Path, run: Python) -> None:
    text = run([acme], "-m", "gradsmith", "explain", "acme103").stdout
    assert "Family: acme (How gradients are written at Acme)" in text
    assert "State: deprecated: use exp-again instead" in text
    assert "From: acme-rules" in text
    assert "the first version of exp-again" in text
    told = json.loads(run([acme], "-m", "gradsmith", "explain", "bare-name", "--format", "json").stdout)
    assert (told["state"], told["replaced_by"], told["package"]) == ("preview", "", "acme-rules")
    ours = json.loads(run([acme], "-m", "gradsmith", "explain", "inplace-grad", "--format", "json").stdout)
    assert (ours["state"], ours["replaced_by"], ours["package"]) == ("stable", "", "")


@pytest.mark.parametrize("rule", ["exp_again", "bare_name", "exp_in_backward"])
def test_bad_shows_the_rule_and_good_does_not(acme: Path, run: Python, rule: str) -> None:
    name = rule.replace("_", "-")
    assert names(lint(run, [acme], example(rule), "--select", name)) == {name}
    assert names(lint(run, [acme], example(rule, "GOOD"), "--select", name)) == set()


CHOICES = [
    ({}, {"exp-again"}),
    ({"select": ["ACME"]}, {"exp-again"}),
    ({"select": ["acme"]}, {"exp-again"}),
    ({"select": ["ACME1"]}, {"exp-again"}),
    ({"select": ["ACME101"]}, {"exp-again"}),
    ({"select": ["all"]}, {"exp-again"}),
    ({"select": ["ACME102"]}, {"bare-name"}),
    ({"select": ["bare-name"]}, {"bare-name"}),
    ({"select": ["acme", "exp-in-backward"]}, {"exp-again", "exp-in-backward"}),
    ({"preview": True}, {"exp-again", "bare-name"}),
    ({"preview": True, "select": ["ACME"]}, {"exp-again", "bare-name"}),
    ({"preview": True, "ignore": ["ACME102"]}, {"exp-again"}),
    ({"preview": True, "ignore": ["acme"]}, set()),
    ({"select": ["GS"]}, set()),
    ({"select": ["GS1", "GSK", "kernels", "GSK1"]}, set()),
]


def test_rules_run_by_their_state_and_by_what_is_selected(acme: Path, run: Python) -> None:
    script = (
        "import json, sys, gradsmith\n"
        "text, choices = json.load(sys.stdin)\n"
        "reports = [gradsmith.lint_source(text, **choice) for choice in choices]\n"
        "print(json.dumps([[[f.rule for f in r.findings], r.notes] for r in reports]))"
    )
    asked = json.dumps([example("exp_again"), [choice for choice, _ in CHOICES]])
    for (choice, expected), (found, notes) in zip(CHOICES, json.loads(run([acme], "-c", script, input=asked).stdout)):
        assert {rule for rule in found if rule in ("exp-again", "bare-name", "exp-in-backward")} == expected, choice
        assert bool(notes) == ("exp-in-backward" in expected), choice


def test_the_command_has_an_option_for_rules_in_preview(acme: Path, run: Python) -> None:
    assert names(lint(run, [acme], example("exp_again"), "--select", "ACME", "--preview")) == {"exp-again", "bare-name"}


def test_a_deprecated_rule_that_is_named_says_what_replaces_it(acme: Path, run: Python) -> None:
    report = lint(run, [acme], example("exp_again"), "--select", "ACME103")
    assert report["notes"] == ["exp-in-backward (ACME103) is deprecated: use exp-again instead"]


def test_the_project_can_ask_for_rules_in_preview(acme: Path, run: Python, tmp_path: Path) -> None:
    settings = tmp_path / "here" / "pyproject.toml"
    settings.write_text("[tool.gradsmith]\npreview = true\n")
    assert names(lint(run, [acme], example("bare_name"))) >= {"exp-again", "bare-name"}
    settings.write_text("[tool.gradsmith]\npreview = 1\n")
    done = run([acme], "-m", "gradsmith", "lint", "-", input="")
    assert done.returncode == 2
    assert "[tool.gradsmith] preview must be true or false, not 1" in done.stderr


def test_a_comment_with_its_name_or_letters_hides_its_findings(acme: Path, run: Python, tmp_path: Path) -> None:
    line = "return grad_output * torch.exp(x)"
    hiding = ["gradsmith: ignore[ACME101]", "gradsmith: ignore[exp-again]", "gradsmith: ignore[acme]", "noqa: ACME101"]
    others = ["noqa: A", "noqa: ACM101", "noqa: GS", "gradsmith: ignore[GSK]"]
    for number, comment in enumerate(hiding + others):
        text = example("exp_again").replace(line, f"{line}  # {comment}")
        (tmp_path / "here" / f"ops_{number}.py").write_text(text)
    done = run([acme], "-m", "gradsmith", "lint", ".", "--select", "ACME", "--format", "json")
    shown = [Path(f["path"]).name for f in json.loads(done.stdout)["findings"]]
    assert shown == [f"ops_{number}.py" for number in range(len(hiding), len(hiding + others))]


def test_sarif_has_it_in_the_table_of_rules(acme: Path, run: Python) -> None:
    done = run(
        [acme], "-m", "gradsmith", "lint", "-", "--format", "sarif", "--select", "ACME", input=example("exp_again")
    )
    (log,) = json.loads(done.stdout)["runs"]
    (result,) = log["results"]
    rule = log["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"], rule["name"]) == ("ACME101", "ACME101", "exp-again")
    assert rule["properties"]["tags"] == ["acme", "How gradients are written at Acme"]
    assert rule["properties"]["state"] == "stable"


def test_its_probe_runs_in_a_check(acme: Path, run: Python, tmp_path: Path) -> None:
    for which, found in (("BAD", {"unbounded-output"}), ("GOOD", set())):
        file = tmp_path / "here" / "subject.py"
        file.write_text(example("unbounded_output", which))
        done = run(
            [acme], "-m", "gradsmith", "check", str(file), "--select", "acme", "--level", "quick", "--format", "json"
        )
        report = json.loads(done.stdout)
        assert [s["verdict"] for s in report["subjects"]] == ["verified"]
        assert names(report) - {"exp-again"} == found


def test_its_profile_lens_runs_in_a_profile(acme: Path, run: Python, tmp_path: Path) -> None:
    for which, found in (("BAD", ["many-operations"]), ("GOOD", [])):
        file = tmp_path / "here" / "subject.py"
        file.write_text(example("many_operations", which))
        words = [f"{file}::Exp", "--select", "acme", "--budget", "0.2", "--no-growth", "--format", "json"]
        profile = json.loads(run([acme], "-m", "gradsmith", "profile", *words).stdout)
        assert [f["rule"] for f in profile["findings"]] == found


def test_pages_are_generated_for_it_and_ours_stay_as_they_are(acme: Path, run: Python, tmp_path: Path) -> None:
    script = str(ROOT / "docs" / "generate.py")
    assert run([acme], script, "--of", "acme", "--into", str(tmp_path / "pages")).returncode == 0
    listing = (tmp_path / "pages" / "rules.md").read_text()
    assert (
        "| ACME102 | bare-name | warning | lint | the name of a Function does not say whose it is (preview) |"
        in listing
    )
    assert "GS202" not in listing
    assert {f.stem for f in (tmp_path / "pages" / "rules").iterdir()} == {name.replace("_", "-") for name in RULES}
    assert (
        "State: deprecated: use exp-again instead." in (tmp_path / "pages" / "rules" / "exp-in-backward.md").read_text()
    )
    run([acme], script, "--into", str(tmp_path / "ours"))
    assert (tmp_path / "ours" / "rules.md").read_text() == (ROOT / "docs" / "rules.md").read_text()


# The cache.


def test_another_version_of_a_package_is_another_answer(run: Python, tmp_path: Path) -> None:
    folder, project = tmp_path / "installed", tmp_path / "project"
    project.mkdir()
    (project / "ops.py").write_text(example("exp_again"))

    def said() -> list[str]:
        words = ["lint", str(project), "--select", "BETA", "--format", "json"]
        report = json.loads(run([folder], "-m", "gradsmith", *words).stdout)
        return [f["message"] for f in report["findings"]]

    write_installed(
        folder,
        "beta",
        "beta",
        {"_words": "TEXT = 'first'", "every": a_rule().replace('"Here', '__import__("beta_words").TEXT + "')},
    )
    (folder / "beta_words.py").write_text("TEXT = 'Helpers count by the version: one'")
    assert said() == ["Helpers count by the version: one is one."]
    (folder / "beta_words.py").write_text("TEXT = 'Helpers count by the version: two'")
    os.utime(folder / "beta_words.py", (1e9, 1e9))  # the same size in the same second: Python would use its old .pyc
    assert said() == ["Helpers count by the version: one is one."]  # nothing that lint can see from outside has changed
    write_installed(folder, "beta", "beta", {}, version="1.1")
    assert said() == ["Helpers count by the version: two is one."]
    write_installed(folder, "beta", "beta", {"every": a_rule().replace("Here is one", "Here it is")}, version="1.1")
    assert said() == ["Here it is."]


def test_finding_its_files_for_the_cache_runs_none_of_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gamma_outer" / "rules").mkdir(parents=True)
    for file in ("gamma_outer/__init__.py", "gamma_outer/rules/__init__.py"):
        (tmp_path / file).write_text("raise SystemExit('was run')")
    monkeypatch.syspath_prepend(tmp_path)
    package = rule_packages.RulePackage("gamma", "gamma_outer.rules", "gamma", "1.0")
    assert package.folders() == [str(tmp_path / "gamma_outer" / "rules")]
    assert rule_packages.RulePackage("gamma", "gamma_outer.missing", "gamma", "1.0").folders() == []
    assert "gamma_outer" not in sys.modules


# What goes wrong costs what is wrong, and is said in a sentence.

BROKEN = {
    "no code": (a_rule(without="CODE"), "it has no CODE"),
    "no severity": (a_rule(without="SEVERITY"), "it has no SEVERITY"),
    "no examples": (a_rule(without="BAD").replace("GOOD = ", "GUT = "), "it has no BAD and no GOOD"),
    "no page": (a_rule().replace('"""finds every Function."""', ""), "it has no docstring, which is its page"),
    "no lens": (a_rule(without="lint"), "it has none of the functions lint, lint_layer, lint_file, probe, profile"),
    "import raises": (a_rule(more="1 / 0"), "importing it raises ZeroDivisionError: division by zero"),
    "import exits": (a_rule(more="raise SystemExit(3)"), "importing it raises SystemExit: 3"),
    "no python": ("def", "importing it raises SyntaxError: invalid syntax (broken_no_python.py, line 1)"),
    "missing module": (a_rule(more="import nowhere_to_be_found"), "importing it raises ModuleNotFoundError"),
    "our letters": (a_rule("GS777"), "its code GS777 begins with GS, which is gradsmith's own; use other letters"),
    "our kernels": (a_rule("GSK01"), "its code GSK01 begins with GSK, which is gradsmith's own; use other letters"),
    "no digits": (a_rule("BETA"), "its code must be capital letters and then digits, not 'BETA'"),
    "small letters": (a_rule("beta102"), "its code must be capital letters and then digits, not 'beta102'"),
    "the same code": (a_rule("BETA100"), "its code BETA100 is that of a-good-one, too"),
    "other letters": (a_rule("BETTA102"), "its code BETTA102 does not begin with BETA, as that of a-good-one does"),
    "unknown severity": (a_rule().replace('"warning"', '"fatal"'), "SEVERITY must be 'error' or 'warning' or 'info', not 'fatal'"),
    "unknown level": (a_rule(more='LEVEL = "fast"'), "LEVEL must be 'quick' or 'standard' or 'deep', not 'fast'"),
    "unknown state": (a_rule(more='STATE = "new"'), "STATE must be 'preview' or 'stable' or 'deprecated', not 'new'"),
    "a text for a tuple": (a_rule(more='EXPLAINS = "wrong-gradient"'), "EXPLAINS must be a tuple of texts, not 'wrong-gradient'"),
    "a number for a text": (a_rule(more="REPLACED_BY = 3"), "REPLACED_BY must be a text, not 3"),
    "no function": (a_rule(more="probe = 3"), "probe must be a function, not 3"),
    "an event of ours": (a_rule(more='EVENT = "crash"'), "its EVENT 'crash' is that of crashed"),
    "a file without triggers": (a_rule(more="def lint_file(file): ..."), "lint_file runs only in files with one of the words in TRIGGERS, and it has none"),
}  # fmt: skip


def test_rules_that_cannot_be_used_are_notes_and_the_others_run(run: Python, tmp_path: Path) -> None:
    modules = {"a_good_one": a_rule("BETA100")}
    modules |= {f"broken_{case.replace(' ', '_')}": text for case, (text, _) in BROKEN.items()}
    folder = write_installed(tmp_path / "installed", "beta", "beta", modules)
    ignored = ",".join(name.replace("_", "-") for name in modules if name != "a_good_one")
    report = lint(run, [folder], example("exp_again"), "--ignore", ignored)
    assert "a-good-one" in names(report)
    notes = list(report["notes"])  # type: ignore[call-overload]
    assert len(notes) == len(BROKEN)
    for case, (_, reason) in BROKEN.items():
        start = f"rule broken-{case.replace(' ', '-')} of beta 1.0 is left out: {reason}"
        assert any(note.startswith(start) for note in notes), (case, notes)


def test_a_rule_that_cannot_be_used_is_an_error_where_it_is_asked_for(run: Python, tmp_path: Path) -> None:
    modules = {"a_good_one": a_rule("BETA100"), "broken": a_rule(without="SEVERITY")}
    folder = write_installed(tmp_path / "installed", "beta", "beta", modules)
    for words in (["lint", "--select", "broken", "-"], ["explain", "broken"], ["rules", "--select", "broken"]):
        done = run([folder], "-m", "gradsmith", *words, input="")
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == "gradsmith: rule broken of beta 1.0 is left out: it has no SEVERITY"
    listed = run([folder], "-m", "gradsmith", "rules", "--select", "beta")
    assert "a-good-one" in listed.stdout
    assert listed.stderr == "gradsmith: rule broken of beta 1.0 is left out: it has no SEVERITY\n"


def test_a_comment_that_names_a_rule_that_cannot_be_used_is_kept(run: Python, tmp_path: Path) -> None:
    modules = {"a_good_one": a_rule("BETA100"), "broken": a_rule(without="SEVERITY")}
    folder = write_installed(tmp_path / "installed", "beta", "beta", modules)
    line = "return grad_output * torch.exp(x)"
    text = example("exp_again").replace(line, f"{line}  # gradsmith: ignore[broken]")
    assert names(lint(run, [folder], text, "--select", "unused-ignore")) == set()
    assert names(lint(run, [folder], text.replace("broken", "brocken"), "--select", "unused-ignore")) == {
        "unused-ignore"
    }


def test_a_rule_with_a_name_of_ours_leaves_ours_in_place(run: Python, tmp_path: Path) -> None:
    modules = {"a_good_one": a_rule("BETA100"), "inplace_grad": a_rule("BETA102")}
    folder = write_installed(tmp_path / "installed", "beta", "beta", modules)
    told = run([folder], "-m", "gradsmith", "explain", "inplace-grad").stdout
    assert told.startswith("inplace-grad (GS202, ")
    left_out = "rule inplace-grad of beta 1.0 is left out: gradsmith has a rule of that name"
    assert left_out in run([folder], "-m", "gradsmith", "explain", "BETA102").stderr
    bad = gradsmith.catalog.rules()["inplace-grad"].bad  # type: ignore[attr-defined]
    assert "inplace-grad" in names(lint(run, [folder], bad))
    assert "inplace-grad" not in names(lint(run, [folder], bad, "--ignore", "inplace-grad"))


@pytest.mark.parametrize(
    ("entry", "text", "reason"),
    [
        ("beta", "import nowhere_to_be_found", "importing beta raises ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("silent", "", "'silent' is the name of a family or a rule already"),
        ("kernels", "", "'kernels' is the name of a family or a rule already"),
        ("crashed", "", "'crashed' is the name of a family or a rule already"),
    ],
)  # fmt: skip
def test_a_package_that_cannot_be_used_is_a_note(
    entry: str, text: str, reason: str, run: Python, tmp_path: Path
) -> None:
    folder = write_installed(tmp_path / "installed", "beta", entry, {"__init__": text, "a_good_one": a_rule("BETA100")})
    report = lint(run, [folder], example("exp_again"))
    assert report["notes"] == [f"the rules of beta 1.0 (entry point '{entry}') are left out: {reason}"]
    assert names(report) == {"pointless-wrapper"}


def test_a_family_that_cannot_be_used_is_an_error_where_it_is_asked_for(run: Python, tmp_path: Path) -> None:
    folder = write_installed(tmp_path / "installed", "beta", "beta", {"__init__": "1 / 0"})
    for words in (["--select", "beta"], ["--select", "BETA"]):
        done = run([folder], "-m", "gradsmith", "lint", *words, "-", input="")
        assert done.returncode == 2
        assert "the rules of beta 1.0 (entry point 'beta') are left out: importing beta raises Zero" in done.stderr
    assert names(lint(run, [folder], example("exp_again"), "--ignore", "beta")) == {"pointless-wrapper"}


def test_an_entry_point_to_a_module_is_told_what_it_should_be(run: Python, tmp_path: Path) -> None:
    folder = write_installed(tmp_path / "installed", "beta", "beta", {"every": a_rule()})
    points = next(folder.glob("*.dist-info")) / "entry_points.txt"
    points.write_text("[gradsmith.rules]\nbeta = beta.every\n")
    (note,) = lint(run, [folder], "")["notes"]  # type: ignore[misc, attr-defined]
    assert note.endswith("beta.every is a module, not a package with one rule in each module")


def test_of_two_packages_with_the_same_letters_or_names_the_first_by_name_is_used(
    acme: Path, run: Python, tmp_path: Path
) -> None:
    other = write_installed(
        tmp_path / "1", "beta", "beta", {"every": a_rule("ACME900"), "exp_again": a_rule("BETA100")}
    )
    third = write_installed(tmp_path / "2", "gamma", "acme", {"every": a_rule("GAMMA100")})
    report = lint(run, [third, other, acme], example("exp_again"))
    assert names(report) == {"pointless-wrapper", "exp-again"}
    assert report["notes"] == [
        "rule every of beta 1.0 is left out: its code ACME900 begins with ACME, as those of acme-rules do",
        "rule exp-again of beta 1.0 is left out: acme-rules has a rule of that name",
        "the rules of beta 1.0 (entry point 'beta') are left out: none of them can be used",
        "the rules of gamma 1.0 (entry point 'acme') are left out: 'acme' is the name of a family or a rule already",
    ]


def test_a_rule_that_raises_costs_one_file_its_findings(run: Python, tmp_path: Path) -> None:
    modules = {"a_good_one": a_rule("BETA100"), "raises": a_rule(more="def lint(function):\n    yield 1 / 0")}
    folder = write_installed(tmp_path / "installed", "beta", "beta", modules)
    report = lint(run, [folder], example("exp_again"))
    assert "a-good-one" in names(report)
    (skipped,) = report["skipped"]  # type: ignore[misc, attr-defined]
    assert skipped["reason"].startswith("rule raises failed on Exp: ZeroDivisionError: division by zero")


def test_a_profile_lens_that_raises_is_a_note(run: Python, tmp_path: Path) -> None:
    more = "def profile(profile):\n    raise KeyError('speed')"
    folder = write_installed(tmp_path / "installed", "beta", "beta", {"raises": a_rule(more=more)})
    file = tmp_path / "here" / "subject.py"
    file.write_text(example("exp_again"))
    words = [f"{file}::Exp", "--select", "beta", "--budget", "0.2", "--no-growth", "--format", "json"]
    profile = json.loads(run([folder], "-m", "gradsmith", "profile", *words).stdout)
    assert "the rule raises stopped: KeyError: 'speed'" in profile["notes"]


# Finding.


def test_what_is_linted_is_never_run_even_if_it_calls_itself_a_rule_package(run: Python, tmp_path: Path) -> None:
    """`python -m` puts the current folder on the path."""
    write_installed(tmp_path / "here", "beta", "beta", {"every": a_rule(more="raise SystemExit('was run')")})
    (tmp_path / "here" / "ops.py").write_text(example("exp_again"))
    done = run([], "-m", "gradsmith", "lint", ".", "--format", "json")
    assert json.loads(done.stdout)["notes"] == []


def test_without_such_a_package_nothing_is_loaded_to_find_one(run: Python) -> None:
    script = "import sys, gradsmith; gradsmith.lint_source('x = 1'); print('importlib.metadata' in sys.modules)"
    assert run([], "-c", script).stdout == "False\n"


def test_the_package_that_comes_first_on_the_path_counts(run: Python, tmp_path: Path) -> None:
    first = write_installed(tmp_path / "1", "beta", "beta", {"every": a_rule()}, version="2.0")
    second = write_installed(tmp_path / "2", "beta", "beta", {"every": a_rule(), "more": a_rule("BETA102")})
    listed = run([first, second], "-m", "gradsmith", "rules", "--select", "beta")
    assert re.findall("BETA...", listed.stdout) == ["BETAxx)", "BETA101"]
    assert listed.stderr == ""


@pytest.mark.parametrize("name", ["GSK11", "GS999", "ACM", "BETA1"])
def test_a_code_that_nobody_has_is_answered_with_the_nearest(name: str, acme: Path, run: Python) -> None:
    done = run([acme], "-m", "gradsmith", "lint", "--select", name, "-", input="")
    assert done.returncode == 2
    assert f"no rule is called '{name}'" in done.stderr
