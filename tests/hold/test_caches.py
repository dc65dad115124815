"""Broken, foreign and special entries of the caches: made again, in words at most."""

from __future__ import annotations

import os
from pathlib import Path

import fault_caches
import fault_together
import pytest

from gradsmith import storage


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path))
    folder = storage.cache_folder("lint")
    assert folder is not None and storage.write_whole(folder / "a.json", b"content" * 20)
    return folder / "a.json"


@pytest.mark.parametrize("name", [name for name in fault_caches.ENTRY if not name.startswith("forged")])
def test_an_entry_that_is_not_ours_counts_as_missing(name: str, entry: Path) -> None:
    if name in ("unreadable", "somebody else's") and (name == "unreadable") == (os.getuid() == 0):
        pytest.skip("this user may read everything, or may not give files away")
    assert storage.read_whole(entry) == b"content" * 20
    fault_caches.ENTRY[name](entry)
    assert storage.read_whole(entry) is None


def test_a_folder_of_the_users_keeps_its_mode_and_an_open_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    folder = storage.cache_folder("lint")
    assert folder is not None and folder.stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    folder.chmod(0o777)
    assert storage.cache_folder("lint") is None
    assert folder.stat().st_mode & 0o777 == 0o777


@pytest.mark.deep
@pytest.mark.parametrize(("kind", "name"), fault_caches.cases())
def test_every_broken_cache(kind: str, name: str) -> None:
    outcome = fault_caches.tried(kind, name)
    assert outcome.survived, outcome.words()


@pytest.mark.deep
def test_much_at_once_is_identical_to_serial() -> None:
    outcome = fault_together.tried()
    assert outcome.survived, outcome.words()
