"""`gs.lint` as a whole: bad input, configuration, isolation from torch, and never a crash."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.catalog import rules
from gradsmith.config import Config
from gradsmith.findings import GradsmithError
from gradsmith.linting import lint, lint_source

BAD = rules()["inplace-grad"].bad


def test_missing_path() -> None:
    with pytest.raises(GradsmithError, match="no such file or folder: /no/where"):
        lint(["/no/where"])


def test_nothing_to_check(tmp_path: Path) -> None:
    assert "nothing to check" in lint([tmp_path]).closing_line()
    (tmp_path / "plain.py").write_text("x = 1\n")
    report = lint(tmp_path)
    assert (report.files, report.functions, report.skipped) == (1, 0, [])


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("syntax.py", b"import torch\ndef broken(:\n    pass\n", "syntax error at line 2"),
        ("latin.py", "# é\nx = 'ü'\n".encode("latin-1"), "cannot be decoded"),
        ("cookie.py", b"# -*- coding: klingon -*-\nx = 1\n", "cannot be decoded"),
        ("wide.py", "x = 1\n".encode("utf-16"), "UTF-16"),
        ("null.py", b"x = 1\0\n", "null byte"),
        ("deep.py", b"x = " + b"(" * 500 + b")" * 500, ""),
        ("later.py", b"type X[T] = list[T]\nasync def f(): (yield) = 3\n", "syntax error"),
    ],
)
def test_unreadable_files_are_listed_and_the_rest_goes_on(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "works.py").write_text(BAD)
    report = lint([tmp_path])
    (skipped,) = report.skipped
    assert skipped.path.endswith(name)
    assert reason in skipped.reason
    assert [f.rule for f in report.findings] == ["inplace-grad"]


def test_a_coding_cookie_is_honoured(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_bytes(("# -*- coding: latin-1 -*-\n# é\n" + BAD).encode("latin-1"))
    report = lint([tmp_path])
    assert report.skipped == []
    assert [f.rule for f in report.findings] == ["inplace-grad"]


def test_select_ignore_and_config(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(BAD)
    assert lint([path], ignore=["inplace-grad"]).findings == []
    assert lint([path], select=["contract"]).findings == []
    assert lint([path], config=Config(ignore=("GS2",))).findings == []
    assert lint([path], config=Config(per_file_ignores={"mine.py": ("silent",)})).findings == []
    assert [f.rule for f in lint([path], config=Config(per_file_ignores={"other.py": ("silent",)})).findings] == [
        "inplace-grad"
    ]
    with pytest.raises(GradsmithError, match="did you mean 'inplace-grad'"):
        lint([path], select=["inplce-grad"])


def test_a_rule_that_fails_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from gradsmith import catalog

    def broken(_: object) -> None:
        raise ZeroDivisionError("oh")

    chosen = [replace(rules()["return-count"], lint=broken), rules()["inplace-grad"]]
    monkeypatch.setattr(catalog, "chosen", lambda *_, **__: chosen)
    report = lint_source(BAD)
    assert [f.rule for f in report.findings] == ["inplace-grad"]
    assert "rule return-count failed on Double: ZeroDivisionError: oh" in report.skipped[0].reason
    with pytest.raises(ZeroDivisionError):
        lint_source(BAD, debug=True)


def test_torch_is_never_imported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BAD)
    code = (
        "import sys; from gradsmith.linting import lint; r = lint(sys.argv[1]);"
        "assert [f.rule for f in r.findings] == ['inplace-grad'];"
        "sys.exit(any(m.partition('.')[0] in ('torch', 'numpy') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_code_is_never_executed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "mine.py").write_text(f"open({str(marker)!r}, 'w')\n" + BAD)
    lint([tmp_path])
    assert not marker.exists()


EXAMPLES = [text for rule in rules().values() for text in (rule.bad, rule.good)]


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_mutated_sources_never_crash(seed: int) -> None:
    draw = random.Random(seed)
    lines = draw.choice(EXAMPLES).split("\n")
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(5)
        at = draw.randrange(len(lines))
        if kind == 0:
            del lines[at : at + draw.randint(1, 3)]
        elif kind == 1:
            tokens = lines[at].split(" ")
            draw.shuffle(tokens)
            lines[at] = " ".join(tokens)
        elif kind == 2:
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        elif kind == 3:
            lines.insert(at, draw.choice(lines))
        else:
            lines[at] = (
                lines[at]
                .replace("ctx", draw.choice(["", "self", "*ctx", "ctx, ctx"]))
                .replace("x", draw.choice("xyg*"))
            )
        lines = lines or [""]
    report = lint_source("\n".join(lines))
    assert not [s for s in report.skipped if "failed on" in s.reason]


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "odd.py"
    path.write_bytes(data)
    lint([path])
