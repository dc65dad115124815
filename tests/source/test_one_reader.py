"""Only source/ reads the source of users: `benchmarks/house.py` counts everybody else who does (tests/test_house.py: nobody)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from house import House


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("inspect.getsource(cls)", True),
        ("linecache.getline(path, 3)", True),
        ("tokenize.generate_tokens(readline)", True),
        ("ast.parse(text)", True),
        ("Path(path).read_text()", True),
        (r"re.search(rf'\b{name}\.apply\b', text)", True),
        (r"re.compile(r'^\s*import\s+triton')", True),
        ("json.loads(path.read_text())", False),
        ("Path('/proc/cpuinfo').read_text()", False),
        ("re.compile(r'noise')", False),
        ("ast.literal_eval(node)", False),
    ],
)
def test_the_count_sees_a_reader(tmp_path: Path, line: str, reads: bool) -> None:
    for folder in ("lab", "source"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "some.py").write_text(f"x = {line}\n", encoding="utf-8")
    assert [place.path for place in House(tmp_path).readers()] == (["lab/some.py"] if reads else [])
