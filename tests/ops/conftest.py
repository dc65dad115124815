"""Both ways of every kernel: compiled C, and plain PyTorch as on a machine without a compiler."""

from __future__ import annotations

import pytest

from gradsmith.native.kernels import Kernels


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernels, "ready", lambda self, dtype: False)


@pytest.fixture(autouse=True)
def _small_tensors_go_to_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shapes of these tests are small; C is what they are about."""
    monkeypatch.setattr("gradsmith.ops.route.LEAST", 0)
