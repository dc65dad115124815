"""Tests of the recurrent engine share one fresh cache, so that nothing is taken from the developer's own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("GRADSMITH_CACHE_DIR")
    # Workers of pytest-xdist share the parent of their temporary folders, and so compile each plan once.
    os.environ["GRADSMITH_CACHE_DIR"] = str(tmp_path_factory.getbasetemp().parent / "gradsmith-cache")
    yield
    if before is None:
        del os.environ["GRADSMITH_CACHE_DIR"]
    else:
        os.environ["GRADSMITH_CACHE_DIR"] = before


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(7)
