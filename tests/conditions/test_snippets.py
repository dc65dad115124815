"""Every error on a BAD example carries a script of plain PyTorch that shows it again, and only while it is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from forks import FORKS

from gradsmith.catalog import Rule, rules
from gradsmith.checking.options import Options
from gradsmith.checking.run import examine_supplied
from gradsmith.findings import Finding
from gradsmith.lab import resolve

# torch is imported once and never computes; every script runs in a fork of its own.
DRIVER = """
import json, os, sys, torch
torch.set_num_threads(1)
scripts, results = json.loads(open(sys.argv[1]).read()), {}
for name, text in scripts.items():
    pid = os.fork()
    if not pid:
        code = 0
        try:
            exec(compile(text, name, "exec"), {"__name__": "__main__"})
        except BaseException as error:
            print(name, type(error).__name__, error)
            code = 1
        sys.stdout.flush()
        os._exit(code)
    results[name] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps(results))
"""
# Rules of every severity: demonstrated harm may raise a warning to an error (tensor-on-ctx with a proven cycle). Without
# a probe are the rules of the run itself (crashed, timed-out, out-of-memory, import-failed): what they report is that no
# script ran to its end.
PROBED = [r for r in rules().values() if r.probe is not None and r.family != "kernels"]
# Scripts carry the inputs of the finding. These GOODs take others: forward-raised is mended by the declared inputs, and
# hidden-parameter by one more argument, so that their BAD's script does not fit them.
OTHER_INPUTS = ("forward-raised", "hidden-parameter")
CALM = [r for r in PROBED if r.level != "deep"]
# One of each family; the rest is deep.
SAMPLE = list({r.family: r for r in CALM if r.level == "quick" and r.severity == "error"}.values())


def errors(rule: Rule, module: ModuleType) -> list[Finding]:
    found: list[Finding] = []
    for name in module.gradsmith_inputs:
        options = Options(level=rule.level, lint=False)
        found += examine_supplied(resolve(getattr(module, name)), options, module).errors
    return found


def run_all(scripts: dict[str, str], folder: Path) -> tuple[dict[str, int], str]:
    listed = folder / "scripts.json"
    listed.write_text(json.dumps(scripts), encoding="utf-8")
    done = FORKS.run("-c", DRIVER, listed)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stdout


def scripts_of(chosen: list[Rule], load: Callable[[str], ModuleType]) -> tuple[dict[str, str], dict[str, Path]]:
    scripts, files = {}, {}
    for rule in chosen:
        module = load(rule.bad)
        assert module.__file__ is not None
        for number, finding in enumerate(errors(rule, module)):
            assert finding.reproduce is not None and finding.reproduce.snippet, f"{rule.name} has no script"
            assert "import gradsmith" not in finding.reproduce.snippet
            scripts[f"{rule.name}#{number}"] = finding.reproduce.snippet
            files[f"{rule.name}#{number}"] = Path(module.__file__)
    return scripts, files


def reproduce(chosen: list[Rule], load: Callable[[str], ModuleType], folder: Path) -> None:
    scripts, files = scripts_of(chosen, load)
    assert {r.name for r in chosen if r.severity == "error"} - {name.partition("#")[0] for name in scripts} == set()
    shown, said = run_all(scripts, folder)
    assert [name for name, code in shown.items() if code != 1] == [], said
    for name, path in files.items():
        path.write_text(rules()[name.partition("#")[0]].good, encoding="utf-8")
    mended = {n: s for n, s in scripts.items() if not n.startswith(OTHER_INPUTS)}
    after, said = run_all(mended, folder)
    assert [name for name, code in after.items() if code != 0] == [], said


def test_scripts_show_the_error_and_pass_once_it_is_mended(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    reproduce(SAMPLE, load, tmp_path)


@pytest.mark.deep
def test_scripts_of_level_deep_start_their_own_ranks(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    reproduce([r for r in PROBED if r.level == "deep"], load, tmp_path)


@pytest.mark.deep
def test_scripts_of_all_other_rules(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    reproduce([r for r in CALM if r not in SAMPLE], load, tmp_path)
