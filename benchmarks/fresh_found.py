"""The defects of docs/found.md, shown in plain PyTorch: each function prints what is returned and what is right.

    python benchmarks/fresh.py collect && python benchmarks/fresh_found.py

The files are run where they were unpacked, alone: none of them needs its package for this.
"""

from __future__ import annotations

import ast
import contextlib
import math
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from fresh_packages import PLACE


def loaded(package: str, path: str) -> SimpleNamespace:
    """The names that a file of an unpacked package defines."""
    (file,) = [p for p in (PLACE / package).rglob(Path(path).name) if str(p).endswith(path)]
    return SimpleNamespace(**runpy.run_path(str(file)))


def outcome(action: Callable[[], Any]) -> str:
    try:
        return str(action())
    except Exception as error:  # that it raises is what is shown
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def apl() -> None:
    apply = loaded("echoai-0.1.3", "apl.py").apl_function.apply
    a, b = torch.full((1, 1), 2.0), torch.full((1, 1), 1.0)
    for value in (-1.0, 3.0):
        x = torch.full((1, 1), value, requires_grad=True)
        (returned,) = torch.autograd.grad(apply(x, a, b).sum(), x)
        own = x.clamp(min=0) + a[0] * (b[0] - x).clamp(min=0)
        (right,) = torch.autograd.grad(own.sum(), x)
        print(f"apl_function at x = {value}: returned {returned.item()}, right {right.item()}")


def lower_bound() -> None:
    apply = loaded("neuralcompression-0.3.1", "_lower_bound.py")._LowerBound.apply
    x = torch.tensor([7.0], requires_grad=True)
    (returned,) = torch.autograd.grad(apply(x, torch.tensor(1.0), 0).sum(), x)
    (right,) = torch.autograd.grad(torch.max(x, torch.tensor(1.0)).sum(), x)
    print(f"_LowerBound, disconnected, at x = 7: returned {returned.item()}, right {right.item()}")


def clamp_min() -> None:
    apply = loaded("neuralcompression-0.3.1", "_simplified_gdn.py")._ClampMin.apply
    x = torch.tensor([7.0], requires_grad=True)
    print("_ClampMin:", outcome(lambda: torch.autograd.grad(apply(x, 1.0).sum(), x)))


def sparsemax_changes_its_input() -> None:
    for package, path in (
        ("pytorch-tabnet-4.1.0", "sparsemax.py"),
        ("opennmt-py-3.5.1", "modules/sparse_activations.py"),
    ):
        x = torch.tensor([[1.0, 2.0]])
        loaded(package, path).SparsemaxFunction.apply(x, 1)
        print(f"SparsemaxFunction of {package}: its input [1, 2] is {x.tolist()[0]} afterwards")


def sparsemax_loss() -> None:
    names = loaded("opennmt-py-3.5.1", "modules/sparse_activations.py")
    for name in ("onmt", "onmt.modules", "onmt.modules.sparse_activations"):
        sys.modules[name] = ModuleType(name)
    vars(sys.modules["onmt.modules.sparse_activations"]).update(vars(names))
    loss = loaded("opennmt-py-3.5.1", "sparse_losses.py").SparsemaxLossFunction.apply
    x = torch.tensor([[1.0, 0.5], [0.2, 0.1]], requires_grad=True)
    targets = torch.tensor([1, 0])
    sums = torch.autograd.grad(loss(x, targets).sum(), x)[0]
    tenth = torch.autograd.grad(0.1 * loss(x, targets).sum(), x)[0]
    print(f"SparsemaxLossFunction: gradient of the sum {sums[0].tolist()}, of a tenth of it {tenth[0].tolist()}")


def relu_like() -> None:
    from torch.nn import functional

    text = next((PLACE / "braincog-0.2.7.19").rglob("base/strategy/surrogate.py")).read_text()
    names: dict[str, Any] = {"torch": torch, "F": functional, "heaviside": lambda x: (x >= 0).to(x)}
    exec(text[text.index("class relu_like") : text.index("class RoundGrad")], names)
    alpha = torch.tensor(2.0, requires_grad=True)
    spikes = names["relu_like"].apply(torch.ones(3), alpha)
    print("relu_like with alpha learned and x frozen:", outcome(lambda: torch.autograd.grad(spikes.sum(), alpha)))


def coba() -> None:
    file = next((PLACE / "norse-1.1.0").rglob("adjoint/coba_lif_adjoint.py"))
    (line,) = [line for line in file.read_text().splitlines() if line.startswith("class CobaLIFAdjointFunction")]
    print(f"{line}", outcome(lambda: exec(f"{line} pass", {"torch": torch})))


def updates_op() -> None:
    """The derivative with respect to new_nu where eps_root is not 0."""
    new_mu, new_nu = (torch.tensor([v], dtype=torch.float64) for v in (0.3, 0.5))
    b1, b2, eps, eps_root, count = 0.9, 0.999, 1e-8, 0.1, 1
    nu = new_nu.clone().requires_grad_()
    value = (new_mu / (1 - b1**count)) / ((nu / (1 - b2**count) + eps_root).sqrt() + eps)
    (right,) = torch.autograd.grad(value.sum(), nu)
    ops = loaded("torchopt-0.7.3", "accelerated_op/_src/adam_op.py")
    got = ops.backward_updates(torch.ones(1), value.detach(), new_mu, new_nu, b1, b2, eps_root, count)[1]
    print(f"AdamOp.UpdatesOp with eps_root = 0.1: gradient of new_nu {got.item():.6f}, right {right.item():.6f}")


def checkpoint_accumulates() -> None:
    apply = loaded("multi-quantization-0.1.1", "checkpoint.py").CheckpointFunction.apply
    x = torch.ones(1, requires_grad=True)
    y = apply(torch.sin, x)
    once, twice = (torch.autograd.grad(y, x, retain_graph=True)[0].item() for _ in range(2))
    print(
        f"CheckpointFunction at x = 1: the first backward gives {once:.4f}, the second {twice:.4f}, right {math.cos(1):.4f}"
    )


def triuvec() -> None:
    apply = excerpt("pytorchcv-0.0.74", "isqrtcovresnet.py", "Triuvec").Triuvec.apply
    x = torch.randn(2, 3, 3).transpose(1, 2).requires_grad_()
    print("Triuvec of a transposed input:", outcome(lambda: torch.autograd.grad(apply(x).sum(), x)))


def stable_svd() -> None:
    apply = excerpt("rraestorch-0.1.13", "utilities/utilities.py", "StableSVD").StableSVD.apply
    torch.manual_seed(0)
    a = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    for name, weigh in (("S", lambda u, s, vh: s.sum()), ("U", lambda u, s, vh: (u[:, 0] ** 2)[0])):
        (returned,) = torch.autograd.grad(weigh(*apply(a)), a)
        (right,) = torch.autograd.grad(weigh(*torch.linalg.svd(a, full_matrices=False)), a)
        print(f"StableSVD through {name}: [0, 0] is {returned[0, 0]:.4f}, torch.linalg.svd gives {right[0, 0]:.4f}")


def weighted_grad() -> None:
    call = excerpt("torchmore-0.1.0", "torchmore/layers.py", "WeightedGrad", "weighted_grad").weighted_grad
    print("weighted_grad:", outcome(lambda: call(torch.ones(2, requires_grad=True), torch.ones(2))))


def pi_rating() -> None:
    apply = excerpt("torch-rating-0.0.2", "_rating_layers/_pi.py", "_PiFunction")._PiFunction.apply
    home, away = (torch.tensor([0.5, 0.2], requires_grad=True) for _ in range(2))
    numbers = torch.tensor(3.0), torch.tensor(0.1), torch.tensor(0.5)
    whole = torch.autograd.grad(apply(home, away, *numbers).sum(), home)[0]
    tenth = torch.autograd.grad(0.1 * apply(home, away, *numbers).sum(), home)[0]
    print(f"_PiFunction: gradient of the sum {whole.tolist()}, of a tenth of it {tenth.tolist()}")


def bessel() -> None:
    names = excerpt("torchgdm-0.61", "tools/special.py", "_gradIn", "_gradYn", DTYPE_COMPLEX=torch.complex128)
    z = torch.tensor([0.7 + 0.4j], dtype=torch.complex128, requires_grad=True)
    for name in ("_gradIn", "_gradYn"):
        apply, step = getattr(names, name).apply, 1e-6
        (returned,) = torch.autograd.grad(apply(1, z).real.sum(), z)
        with torch.no_grad():
            along = [((apply(1, z + d) - apply(1, z - d)).real / (2 * step)).item() for d in (step, step * 1j)]
        print(f"{name}(1, 0.7 + 0.4i): returned {returned.item():.4f}, right {complex(*along):.4f}")


def attention_of_spikes() -> None:
    sys.path.insert(0, str(PLACE / "exact-snn-nn-3.2.3"))
    file = loaded("exact-snn-nn-3.2.3", "exact_snn/attention.py")
    torch.manual_seed(0)
    times = [torch.rand(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    options = (15.0, 4.0, False, 1.0, 1.0, 40.0, "gaussian")
    weight = torch.randn(3, 2, dtype=torch.float64)
    returned = torch.autograd.grad((weight * file.ExactAttentionCombineFn.apply(*times, *options)).sum(), times)
    right = torch.autograd.grad((weight * file._combine_forward(*times, *options)[0]).sum(), times)
    for name, one, other in zip(("t_q", "t_k", "t_v"), returned, right):
        print(f"ExactAttentionCombineFn, {name}: returned {one[0, 0].item():.6f}, right {other[0, 0].item():.6f}")


def periodic_pad() -> None:
    apply = loaded("gmlsnets-pytorch-1.0.0", "gmlsnets_pytorch/util.py").PeriodicPad2dFunc.apply
    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    print("PeriodicPad2dFunc:", outcome(lambda: apply(x, None, False).sum().backward()))


def poisson() -> None:
    apply = loaded("marcopolo-pytorch-1.1.1", "MarcoPolo/regression/models.py").Poisson_Function.apply
    torch.manual_seed(0)
    counts, factors, scale = (
        torch.randint(0, 5, (6, 3)).double(),
        torch.randn(6, 2).double(),
        torch.rand(6).double() + 0.5,
    )
    delta, mask = torch.randn(4, 3, dtype=torch.float64), torch.ones(4, 3, dtype=torch.float64)
    beta = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def value(coefficients: torch.Tensor, *more: str) -> torch.Tensor:
        found: torch.Tensor = apply(counts, factors, scale, delta, coefficients, mask, *more)
        return found

    (whole,) = torch.autograd.grad(value(beta), beta)
    (tenth,) = torch.autograd.grad(0.1 * value(beta), beta)
    step = torch.zeros_like(beta)
    step[0, 0] = 1e-6
    right = ((value(beta.detach() + step) - value(beta.detach() - step)) / 2e-6).item()
    print(
        f"Poisson_Function: gradient {whole[0, 0].item():.4f}, of a tenth {tenth[0, 0].item():.4f}, right {right:.4f}"
    )
    print("Poisson_Function, 'gamma':", outcome(lambda: value(beta, "gamma").sum().backward()))
    torch.set_default_dtype(torch.float32)  # the file sets another


def correlation_is_overwritten() -> None:
    (home,) = (PLACE / "moment-neural-network-0.2.1").glob("mnn")
    sys.modules["erfi_pytorch"] = ModuleType("erfi_pytorch")
    vars(sys.modules["erfi_pytorch"])["erfi"] = None  # not used here
    sys.path.insert(0, str(home.parent))
    from importlib import import_module

    apply = import_module("mnn.mnn_core.mnn_pytorch").MnnActivateTrio.apply
    mean, std = torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.float64)
    rho = torch.tensor([[[1.0, 0.5], [0.5, 1.0]]], dtype=torch.float64, requires_grad=True)
    sum(out.sum() for out in apply(mean.requires_grad_(), std.requires_grad_(), rho)).backward()
    print("MnnActivateTrio: rho is", rho.tolist()[0], "after backward, and was [[1.0, 0.5], [0.5, 1.0]]")


def quantize() -> None:
    names = excerpt(
        "snapml-auto-quantization-0.0.8", "quant_utils.py", "QuantizeFunction", Function=torch.autograd.Function
    )
    x = torch.ones(3, requires_grad=True)
    print("QuantizeFunction:", outcome(lambda: names.QuantizeFunction.apply(x, 0.0, 1.0, "none").sum().backward()))


def integrated() -> None:
    apply = loaded("adfwi-torch-0.1.2", "Normalized_Integration_method.py").Misfit_NIM.apply
    torch.manual_seed(0)
    computed, observed = torch.rand(1, 6, 2, requires_grad=True), torch.rand(1, 6, 2)
    whole, tenth = (torch.autograd.grad(c * apply(computed, observed), computed)[0].flatten()[0] for c in (1.0, 0.1))
    print(f"Misfit_NIM: gradient of the misfit {whole.item():.4f}, of a tenth of it {tenth.item():.4f}")


def cutest() -> None:
    apply = excerpt("phasetorch-0.2.0", "functions/utils.py", "CUTEstFunction").CUTEstFunction.apply

    def squares(x: Any, gradient: bool) -> tuple[float, Any]:
        return float((x * x).sum()), 2 * x

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    whole, tenth = (torch.autograd.grad(c * apply(x, SimpleNamespace(obj=squares)), x)[0].tolist() for c in (1.0, 0.1))
    print(f"CUTEstFunction of a sum of squares: gradient {whole}, of a tenth of it {tenth}")


def binarization() -> None:
    names = excerpt(
        "pytorch-ptt-1.7.0", "basic_functions.py", "DifferentiableBinarization", Function=torch.autograd.Function
    )
    y = names.DifferentiableBinarization.apply(torch.rand(2, 3, requires_grad=True))
    print("DifferentiableBinarization:", y.dtype, outcome(lambda: y.float().sum().backward()))


def gamma_quantile() -> None:
    names = excerpt("torchtree-scipy-1.0.0", "evolution/site_model.py", "GammaQuantileFunction")
    for dtype in (torch.float64, torch.float32):
        shape = torch.tensor([0.6], dtype=dtype, requires_grad=True)
        value = names.GammaQuantileFunction.apply(torch.tensor([0.75], dtype=dtype), shape, 1e-6)
        print("GammaQuantileFunction", dtype, f"gradient {torch.autograd.grad(value.sum(), shape)[0].item():.4f}")


def excerpt(package: str, path: str, *wanted: str, **given: Any) -> SimpleNamespace:
    """Some names of a file whose other statements need what is not installed: those that run are run."""
    (file,) = [p for p in (PLACE / package).rglob(Path(path).name) if str(p).endswith(path)]
    names: dict[str, Any] = {"__name__": "excerpt", "torch": torch, **given}
    for statement in ast.parse(file.read_text()).body:
        with contextlib.suppress(Exception):
            exec(compile(ast.Module([statement], []), str(file), "exec"), names)
    return SimpleNamespace(**{name: names[name] for name in wanted})


if __name__ == "__main__":
    older = (apl, lower_bound, clamp_min, sparsemax_changes_its_input, sparsemax_loss, relu_like, updates_op, coba)
    newer = (checkpoint_accumulates, triuvec, stable_svd, weighted_grad, pi_rating, bessel)
    latest = (attention_of_spikes, periodic_pad, poisson, correlation_is_overwritten, quantize, integrated)
    last = (cutest, binarization, gamma_quantile)
    for show in older + newer + latest + last:
        try:
            show()
        except Exception as error:
            print(show.__name__, "could not be shown:", type(error).__name__, error)
