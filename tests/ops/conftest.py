"""Both ways of every kernel: compiled C, and plain PyTorch as on a machine without a compiler."""

from __future__ import annotations

import pytest

from gradsmith.native.kernels import Kernels


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernels, "ready", lambda self, dtype: False)
