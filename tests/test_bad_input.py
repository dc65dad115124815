"""Each row of "Bad input, and what it gets", with a real file and a real process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forks import FORKS

GOOD = """
class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output
"""
INPUTS = """
def example():
    return (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)


gradsmith_inputs = {{{names}}}
"""


def source(*bodies: str, head: str = "import torch\n") -> str:
    names = ", ".join(f'"{body.split("class ")[1].split("(")[0]}": example' for body in bodies)
    return head + "\n".join(bodies) + INPUTS.format(names=names)


def with_forward(name: str, statement: str) -> str:
    return GOOD.format(name=name).replace("return 2 * x", statement)


def gradsmith(*args: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A check is of the quickest level, unless the arguments say otherwise: what is tested here does not depend on it."""
    level = ["--level", "quick"] if args[0] == "check" and "--level" not in args else []
    fresh = ["--no-cache"] if args[0] == "check" else []
    return FORKS.run("-m", "gradsmith", *args, *level, *fresh, cwd=cwd, env={**os.environ, **env})


def as_json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("command", ["lint", "check"])
def test_a_path_that_does_not_exist(command: str, tmp_path: Path) -> None:
    done = gradsmith(command, "nowhere.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip() == "gradsmith: no such file or folder: nowhere.py"
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["lint", "check"])
def test_an_empty_folder_and_a_file_without_functions(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "plain.py").write_text("x = 1\n")
    for target in ("empty", "plain.py"):
        done = gradsmith(command, target, cwd=tmp_path)
        assert done.returncode == 0
        assert "nothing to check" in done.stdout


def test_unreadable_files_are_skipped_with_the_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("class F(torch.autograd.Function:\n    pass\n")
    (tmp_path / "latin.py").write_bytes(b"# autograd Function \xe9\xff def backward(ctx save_for_backward\n")
    (tmp_path / "newer.py").write_text("type Alias[T] = list[T]\n" + source(GOOD.format(name="New")))
    (tmp_path / "good.py").write_text(source(GOOD.format(name="Fine")))
    done = gradsmith("check", ".", "--format", "json", cwd=tmp_path)
    report = as_json(done)
    skipped = {Path(s["path"]).name: s["reason"] for s in report["skipped"]}
    assert "line 1" in skipped["broken.py"]
    assert "decode" in skipped["latin.py"]
    if sys.version_info < (3, 12):
        assert "newer Python" in skipped["newer.py"]
    verdicts = {s["name"]: s["verdict"] for s in report["subjects"]}
    assert verdicts["Fine"] == "verified"


def test_an_import_that_raises_leaves_the_lint_results_and_the_classes(tmp_path: Path) -> None:
    writes = GOOD.format(name="Bad").replace(
        "return 2 * grad_output", "grad_output.mul_(2)\n        return grad_output"
    )
    head = "import torch\n\nimport a_package_for_the_cluster\n"
    (tmp_path / "ops.py").write_text(source(writes, GOOD.format(name="Two"), GOOD.format(name="Three"), head=head))
    done = gradsmith("check", "ops.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "inplace-grad" in done.stdout
    assert "line 3 imports a_package_for_the_cluster, which is not installed" in " ".join(done.stdout.split())
    stubbed = gradsmith("check", "ops.py", "--stub", "a_package_for_the_cluster", "--format", "json", cwd=tmp_path)
    verdicts = {s["name"]: s["verdict"] for s in as_json(stubbed)["subjects"]}
    assert verdicts == {"Bad": "refuted", "Two": "verified", "Three": "verified"}


def test_top_level_code_that_raises_or_exits(tmp_path: Path) -> None:
    for statement in ("raise SystemExit(3)", "1 / 0"):
        (tmp_path / "train.py").write_text(source(GOOD.format(name="F")) + f"\n{statement}\n")
        done = gradsmith("check", "train.py", cwd=tmp_path)
        assert done.returncode == 0
        assert "import-failed" in done.stdout
        assert "gradsmith ran only F and the names it uses" in " ".join(done.stdout.split())
        assert "Traceback" not in done.stdout + done.stderr


def test_exits_crashes_and_hoarders_do_not_stop_the_next_subject(tmp_path: Path) -> None:
    bodies = [
        with_forward("Exits", "import os; os._exit(7); return x"),
        with_forward("Crashes", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV); return x"),
        with_forward("Hoards", "kept = [torch.ones(1 << 24) for _ in range(400)]; return x * len(kept)"),
        # 0x4022: private, anonymous, and MAP_NORESERVE, which the mmap module has no name for
        with_forward("Reserves", "import mmap; mmap.mmap(-1, 64 << 30, flags=0x4022); return 2 * x"),
        GOOD.format(name="Fine"),
    ]
    (tmp_path / "ops.py").write_text(source(*bodies))
    # At this level what has crashed is tried again without empty tensors, and then without invented ones.
    options = ("--level", "standard", "--memory-limit", "2", "--format", "json")
    done = gradsmith("check", "ops.py", *options, cwd=tmp_path)
    report = as_json(done)
    rules = {f["function"]: f["rule"] for f in report["findings"] if f["severity"] == "error"}
    assert rules == {"Exits": "crashed", "Crashes": "crashed", "Hoards": "out-of-memory"}
    (crashed,) = [f for f in report["findings"] if f["function"] == "Crashes" and f["severity"] == "error"]
    line = next(n for n, text in enumerate((tmp_path / "ops.py").read_text().splitlines(), 1) if "SIGSEGV" in text)
    assert crashed["line"] == line  # a signal names the line that was running
    assert f"SIGSEGV (segmentation fault) ended its process in line {line} (forward)" in crashed["message"]
    verdicts = {s["name"]: s["verdict"] for s in report["subjects"]}
    assert verdicts["Reserves"] == verdicts["Fine"] == "verified"
    assert {verdicts[name] for name in rules} == {"unverified"}


def test_a_hang_does_not_stop_the_next_subject(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(
        source(with_forward("Hangs", "\n        while x is not None: pass\n        return x"), GOOD.format(name="Fine"))
    )
    done = gradsmith("check", "ops.py", "--timeout", "3", "--format", "json", cwd=tmp_path)
    report = as_json(done)
    assert [(f["function"], f["rule"]) for f in report["findings"] if f["severity"] == "error"] == [
        ("Hangs", "timed-out")
    ]
    verdicts = {s["name"]: s["verdict"] for s in report["subjects"]}
    assert verdicts == {"Hangs": "unverified", "Fine": "verified"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("lint", ".", "--select", "inplce-grad"), "did you mean 'inplace-grad'?"),
        (("lint", ".", "--selct", "inplace-grad"), "--select"),
        (("lnt", "."), "did you mean 'lint'?"),
        (("check", ".", "--level", "qick"), "quick"),
    ],
)
def test_misspelt_words_get_the_nearest_valid_one(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = gradsmith(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_broken_and_misspelt_configuration(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradsmith]\nselect = [\n")
    done = gradsmith("lint", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "not valid TOML" in done.stderr
    assert "line 3" in done.stderr or "at end of document" in done.stderr.lower()
    (tmp_path / "pyproject.toml").write_text('[tool.gradsmith]\nselekt = ["silent"]\n')
    done = gradsmith("lint", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "no key 'selekt'; did you mean 'select'?" in done.stderr


def test_inputs_that_do_not_fit_forward(tmp_path: Path) -> None:
    body = GOOD.format(name="Product").replace("(ctx, x)", "(ctx, x, w)").replace("2 * x", "x @ w")
    (tmp_path / "ops.py").write_text("import torch\n" + body)
    done = gradsmith("check", "ops.py::Product", "--inputs", "randn(4, 3), randn(4, 5)", cwd=tmp_path)
    assert done.returncode == 1
    assert "mat1 and mat2 shapes cannot be multiplied" in " ".join(done.stdout.split())
    assert "x (4, 3) float32, w (4, 5) float32" in " ".join(done.stdout.split())


def test_a_class_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(source(GOOD.format(name="Swish")))
    done = gradsmith("check", "ops.py::Swsh", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'Swish'?" in done.stderr


def test_without_torch_lint_works_and_check_says_what_to_install(tmp_path: Path) -> None:
    blocker = tmp_path / "site"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: None if name == 'torch' else find(name, package)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    (tmp_path / "ops.py").write_text(source(GOOD.format(name="Fine")))
    path = os.pathsep.join([str(blocker), os.environ.get("PYTHONPATH", "")])
    for command, status, said in (("lint", 0, ""), ("check", 2, "run: pip install torch")):
        call = [sys.executable, "-m", "gradsmith", command, "ops.py"]  # with an import of its own
        own = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(call, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == status and said in done.stderr


def test_a_file_inside_a_package_is_imported_under_its_package_name(tmp_path: Path) -> None:
    package = tmp_path / "mine" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "mine" / "__init__.py").write_text("factor = 2\n")
    (package / "__init__.py").write_text("")
    (package / "ops.py").write_text(source(GOOD.format(name="F"), head="import torch\nfrom .. import factor\n"))
    done = gradsmith("check", "mine/inner/ops.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 verified" in done.stdout
    assert gradsmith("check", "mine.inner.ops:F", cwd=tmp_path).returncode == 0


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_pip_install_into_an_empty_environment_brings_no_torch(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(root)], check=True)
    listed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert "gradsmith" in listed
    assert "torch" not in listed
    (tmp_path / "ops.py").write_text(source(GOOD.format(name="Fine")))
    assert subprocess.run([python, "-m", "gradsmith", "lint", tmp_path / "ops.py"], check=False).returncode == 0


def test_a_crash_on_guessed_inputs_is_no_accusation(tmp_path: Path) -> None:
    body = with_forward("Kernel", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV); return x")
    (tmp_path / "ops.py").write_text(source(body).partition("gradsmith_inputs")[0])
    report = as_json(gradsmith("check", "ops.py", "--format", "json", cwd=tmp_path))
    (finding,) = [f for f in report["findings"] if f["rule"] == "crashed"]
    assert finding["severity"] == "warning"
    assert "on guessed inputs" in finding["message"]
    assert [s["verdict"] for s in report["subjects"]] == ["unverified"]


def test_a_package_that_is_missing_here_is_no_fault_of_the_function(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text("import a_package_for_the_cluster\n" + source(GOOD.format(name="F")))
    report = as_json(gradsmith("check", "ops.py", "--format", "json", cwd=tmp_path))
    found = [(f["rule"], f["severity"]) for f in report["findings"] if f["rule"] == "import-failed"]
    assert found == [("import-failed", "info")]
    assert [s["verdict"] for s in report["subjects"]] == ["verified"]
