"""What several tests share: sources written to files, subjects checked in this process."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from gradsmith.findings import Report
from gradsmith.folding import together

with contextlib.suppress(ImportError):  # tests of lint and of the source model run without it: tools/test_pythons.py
    import torch

pytest_plugins = ["forks", "kept_zygotes"]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without torch, files that import it are left out."""
    if "torch" in sys.modules or not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    imports = [node for node in ast.parse(collection_path.read_bytes()).body if isinstance(node, ast.Import)]
    return True if any(name.name == "torch" for node in imports for name in node.names) else None


_COUNT = itertools.count()

# A shell that starts tests in the background has them ignore Ctrl-C, and every process they start would inherit that;
# a handler is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says how busy the machine is, and nothing about what is tested; the same examples each time.
settings.register_profile("any load", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is taken from the developer's own cache, and nothing put there."""
    before = os.environ.get("GRADSMITH_CACHE_DIR")
    # Workers of pytest-xdist share the parent of their temporary folders, and so compile each plan once.
    os.environ["GRADSMITH_CACHE_DIR"] = str(tmp_path_factory.getbasetemp().parent / "gradsmith-cache")
    yield
    if before is None:
        del os.environ["GRADSMITH_CACHE_DIR"]
    else:
        os.environ["GRADSMITH_CACHE_DIR"] = before


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Two test processes share two cores."""
    if "torch" in sys.modules:
        torch.set_num_threads(1)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], ModuleType]:
    """Write a source to a file and import it, so that inspect finds its lines."""

    def make(source: str) -> ModuleType:
        name = f"subject_{next(_COUNT)}"
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return make


@pytest.fixture
def check_source(load: Callable[[str], ModuleType]) -> Callable[..., Report]:
    """Check every subject that a source declares inputs for, in this process."""
    pytest.importorskip("torch")
    from gradsmith.checking.options import Options
    from gradsmith.checking.run import examine_supplied
    from gradsmith.lab import resolve

    def run(source: str, level: str = "standard", lint: bool = False) -> Report:
        module = load(source)
        total = Report()
        for name in module.gradsmith_inputs:
            target = resolve(getattr(module, name))
            total = together(total, examine_supplied(target, Options(level=level, lint=lint, debug=True), module))
        return total

    return run
