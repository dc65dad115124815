"""Functions of the user's that are called only to hear what they pass on: nothing but computation."""

from __future__ import annotations

import importlib
import sys

import pytest

from gradsmith.inputs.guess.harmless import only_computes
from gradsmith.source.loaded import file_of

MODULE = """
import math
import os
import shutil
import numpy as np
import torch
import torch.nn.functional as F
from pathlib import Path
from subprocess import check_output

CALLS = []


def inner(x):
    return F.relu(x) * math.pi


def tidy(path):
    shutil.rmtree(path)


def computes(x, sizes):
    parts = [inner(part) for part in torch.split(x, sizes)]
    parts.append(x.sum().view(1))
    return torch.cat(parts).to(np.float64), max(len(p) for p in parts)


def removes(x):
    os.remove("data.bin")
    return x


def removes_elsewhere(x):
    tidy("data")
    return x


def writes(x):
    Path("log").write_text("x")
    return x


def runs(x):
    check_output(["ls"])
    return x


def trains(x):
    x.sum().backward()
    return x


def prints(x):
    print(x)
    return x


def remembers(x):
    global CALLS
    CALLS = [x]
    return x


def imports(x):
    import shutil as s

    s.rmtree("data")
    return x


def imports_from(x):
    from os import remove

    remove("data.bin")
    return x


def saves(x):
    torch.save(x, "x.pt")
    return x
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("harmless")
    (folder / "module_with_traces.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    importlib.import_module("module_with_traces")
    yield {node.name: node for node in file_of(sys.modules["module_with_traces"]).tree.body if hasattr(node, "args")}
    sys.path.remove(str(folder))
    del sys.modules["module_with_traces"]


@pytest.mark.parametrize("name", ["computes", "inner"])
def test_what_only_computes_may_be_called(functions, name):
    assert only_computes(functions[name], "module_with_traces")


@pytest.mark.parametrize(
    "name",
    [
        "removes",
        "removes_elsewhere",
        "writes",
        "runs",
        "trains",
        "prints",
        "remembers",
        "saves",
        "imports",
        "imports_from",
    ],
)
def test_what_leaves_traces_may_not(functions, name):
    assert not only_computes(functions[name], "module_with_traces")
