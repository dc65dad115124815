"""Questions that launch code asks of a GPU, answered without one. Tensors stay on the CPU all the time."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from typing import Any

import torch
import triton

from gradsmith.lab.triton.counts import used
from gradsmith.source import knowledge as know

MULTIPROCESSORS = 3  # more than one program shares a reduction, and it is no power of two
_CAPABILITY = (8, 0)
_PROPERTIES = types.SimpleNamespace(
    name="gradsmith interpreter",
    major=8,
    minor=0,
    multi_processor_count=MULTIPROCESSORS,
    total_memory=1 << 34,
    warp_size=32,
    regs_per_multiprocessor=1 << 16,
    max_threads_per_multi_processor=2048,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=166912,
    shared_memory_per_multiprocessor=167936,
    L2_cache_size=1 << 22,
    gcnArchName="",
)
# Whatever makes a tensor may be told where. (`torch.normal` and `randint_like` draw; in-place draws stay where they are.)
_DRAWN = {name for name in know.RANDOM if name.startswith(("rand", "normal")) and not name.endswith("_")}
_MAKING = sorted(know.CREATION | _DRAWN | {"as_tensor", "asarray"})
_ELSEWHERE = ("cuda", "xpu", "npu", "hip")
_NOT_USERS = ("torch.", "triton.", "gradsmith.", "numpy.")


class _Utilities:
    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        used("driver")
        return {
            "max_shared_mem": 166912,
            "multiprocessor_count": MULTIPROCESSORS,
            "warpSize": 32,
            "max_num_regs": 1 << 16,
            "sm_clock_rate": 1,
            "mem_clock_rate": 1,
            "mem_bus_width": 1,
            "num_aicore": MULTIPROCESSORS,
            "num_vectorcore": MULTIPROCESSORS,
        }


class Driver:
    """What `triton.runtime.driver.active` is asked for while kernels are interpreted."""

    utils = _Utilities()

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        used("driver")
        return GPUTarget("cpu", 80, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        return lambda call, *_, **__: (call(), [0.0, 0.0, 0.0])[1]

    def map_python_to_cpp_type(self, kind: Any) -> Any:
        return kind

    @staticmethod
    def is_active() -> bool:
        return True


class _Nothing(contextlib.ContextDecorator):
    """`torch.cuda.device(...)` and its like: a block in which nothing is different."""

    def __init__(self, *_: Any, **__: Any) -> None:
        used("cuda calls")

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: Any) -> None: ...


def install() -> None:
    """Put all of it in place."""
    triton.runtime.driver.set_active(Driver())
    _activate_backend()
    _answer_cuda()
    _say_cuda()
    _stay_on_cpu()
    _leave_uncompiled()


def _activate_backend() -> None:
    """Packages ask the backend of the pretended device whether it is here, too, and define no kernel if it is not."""
    from triton.backends import backends

    if (backend := backends.get("nvidia")) is not None:
        backend.driver.is_active = staticmethod(_is_active)


def _is_active() -> bool:
    used("driver")
    return True


def _answer_cuda() -> None:
    answers: dict[str, Any] = {
        "get_device_properties": _answering(_PROPERTIES),
        "get_device_capability": _answering(_CAPABILITY),
        "get_device_name": _answering(_PROPERTIES.name),
        "is_available": _answering(True),
        "current_device": _answering(0),
        "device_count": _answering(1),
        "synchronize": _answering(None),
        "empty_cache": _answering(None),
        "current_stream": _answering(
            types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None, wait_stream=lambda s: None)
        ),
        "device": _Nothing,
        "device_of": _Nothing,
        "stream": _Nothing,
    }
    for name, answer in answers.items():
        real = getattr(torch.cuda, name)
        # A class stays one: code checks isinstance(x, torch.cuda.device).
        setattr(torch.cuda, name, answer if isinstance(answer, type) else _for_users(real, answer))


def _answering(value: Any) -> Any:
    def answer(*_: Any, **__: Any) -> Any:
        used("cuda calls")
        return value

    return answer


def _for_users(real: Any, answer: Any) -> Any:
    @functools.wraps(real)
    def ask(*arguments: Any, **named: Any) -> Any:
        return answer() if _asked_by_user(2) else real(*arguments, **named)

    return ask


def _asked_by_user(depth: int) -> bool:
    name = f"{sys._getframe(depth).f_globals.get('__name__', '')}."
    return not name.startswith(_NOT_USERS)


def _say_cuda() -> None:
    """`assert x.is_cuda` and `x.device.type == "cuda"` hold in user code; torch's own code hears the truth."""
    real: Any = torch._C.TensorBase.is_cuda

    def is_cuda(self: Any) -> bool:
        if _asked_by_user(2):
            used("is_cuda")
            return True
        return bool(real.__get__(self))

    torch.Tensor.is_cuda = property(is_cuda)  # type: ignore[assignment]
    where: Any = torch._C.TensorBase.device
    pretended = torch.device("cuda", 0)

    def device(self: Any) -> torch.device:
        real: torch.device = where.__get__(self)
        if real.type == "cpu" and _asked_by_user(2):
            used("device")
            return pretended
        return real

    torch.Tensor.device = property(device)  # type: ignore[assignment]


def _stay_on_cpu() -> None:
    """A device that is not here means the CPU. (A TorchFunctionMode would be off inside backward.)"""
    for name in _MAKING:
        place = torch.Tensor if name.startswith("new_") else torch
        if hasattr(place, name):
            setattr(place, name, _redirected(getattr(place, name)))
    torch.Tensor.to = _redirected(torch.Tensor.to, positional=True)  # type: ignore[method-assign]
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]


def _leave_uncompiled() -> None:
    """A user's torch.compile gives back what it was given: a compiler for a GPU that is not here, and it refuses to be watched."""
    real: Any = torch.compile

    @functools.wraps(real)
    def compile(model: Any = None, *arguments: Any, **named: Any) -> Any:
        if not _asked_by_user(2):
            return real(model, *arguments, **named)
        used("torch.compile")
        return model if model is not None else lambda function: function

    torch.compile = compile


def _redirected(real: Any, *, positional: bool = False) -> Any:
    @functools.wraps(real)
    def make(*arguments: Any, **named: Any) -> Any:
        if named.get("device") is not None:
            named["device"] = _here(named["device"])
        if positional:
            arguments = (
                *arguments[:1],
                *(_here(a) if isinstance(a, (str, torch.device)) else a for a in arguments[1:]),
            )
        return real(*arguments, **named)

    return make


def _here(device: Any) -> Any:
    if isinstance(device, int) or str(device).startswith(_ELSEWHERE):
        used("device")
        return torch.device("cpu")
    return device
