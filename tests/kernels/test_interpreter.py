"""Kernels run in workers, on CPU tensors, with what the interpreter lacks stood in for and listed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradsmith as gs
from gradsmith.source.imports import file_imports

pytest.importorskip("triton")
KERNELS = """
import torch
import triton
import triton.language as tl
from triton.backends import backends
from triton.language.extra import libdevice


@triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def scaled_tanh(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, (libdevice.FUNCTION(x) * scale.to(tl.float32)).to(x.dtype), mask=i < n)


class ScaledTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        assert x.is_cuda and x.device.type == "cuda" and torch.cuda.is_available()
        assert any(backend.driver.is_active() for backend in backends.values())
        x = x.contiguous()
        y = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        assert torch.hann_window(4, device="cuda").numel() == torch.asarray([1, 2, 3, 4], device=x.device).numel()
        with torch.cuda.device(x.device):
            scaled_tanh[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), scale)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (ctx.scale - y * y / ctx.scale), None


gradsmith_inputs = {"ScaledTanh": lambda: (torch.randn(37, requires_grad=True), 1.5)}
"""


def test_what_a_gpu_would_answer_is_answered_and_listed(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(KERNELS.replace("FUNCTION", "tanh"), encoding="utf-8")
    report = gs.check_paths(path, level="quick")
    assert [s.verdict for s in report.subjects] == ["verified"], [f.message for f in report.findings]
    (note,) = [n for n in report.notes if "interpreter" in n]
    for shim in ("autotune", "cuda calls", "device", "driver", "float arguments", "is_cuda", "libdevice.tanh"):
        assert shim in note


def test_an_unknown_function_of_libdevice_raises_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(KERNELS.replace("FUNCTION", "cyl_bessel_i0"), encoding="utf-8")
    report = gs.check_paths(path, level="quick")
    assert any("libdevice.cyl_bessel_i0" in f.message for f in report.findings)


def test_check_from_python_uses_a_worker_by_itself(tmp_path: Path) -> None:
    # Not autotuned: triton 3.2 asks for a GPU when a script imports such a kernel, before gradsmith hears of it.
    plain = re.sub("@triton.autotune.*\n", "", KERNELS).replace("scale)\n", "scale, BLOCK=16)\n", 1)
    (tmp_path / "ops.py").write_text(plain.replace("FUNCTION", "tanh"), encoding="utf-8")
    script = "import gradsmith as gs, ops, torch; r = gs.check(ops.ScaledTanh, torch.randn(21, requires_grad=True), 2.0, level='quick'); print(r.closing_line())"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "1 verified", done.stdout + done.stderr


def test_a_profile_says_what_each_kernel_launched_and_moved(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(KERNELS.replace("FUNCTION", "tanh"), encoding="utf-8")
    command = [sys.executable, "-m", "gradsmith", "profile", "ops.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    said = " ".join(done.stdout.split())
    assert "scaled_tanh: 1 launch, 3 programs, 148 B loaded, 148 B stored in one run" in said, said + done.stderr


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import triton\n", True),
        ("import torch, triton\n", True),
        ("from triton import jit\n", True),
        ("try:\n    import triton.language as tl\nexcept ImportError:\n    tl = None\n", True),
        ("from .triton import jit\n", False),  # that module is looked at when it is imported
        ("# triton\n", False),
        ("x = 'triton'\n", False),
    ],
)
def test_a_module_with_kernels_is_known_before_it_runs(text: str, seen: bool, tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(text, encoding="utf-8")
    assert file_imports(path, "triton") is seen


def test_bfloat16_is_computed_as_rounded_float32(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    source = KERNELS.replace("libdevice.FUNCTION(x)", "(x + x)").replace("scale.to(tl.float32)", "1.0")
    path.write_text(source, encoding="utf-8")
    script = (
        "import torch\nfrom gradsmith.lab.triton.importing import watch\nwatch('ops.py')\nimport ops\n"
        "x = torch.randn(37).bfloat16()\nprint(torch.equal(ops.ScaledTanh.apply(x, 1.0), x + x))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "True", done.stdout + done.stderr
