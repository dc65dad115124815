"""The attribution pass: every operation below autograd, with the user's line, its loop iteration and the memory it touched.

A dispatch mode sees the operations of forward, of the user's backward, and of autograd's own nodes. The latter have no
Python frame; they are tied to the line of forward they belong to through the sequence number of their node.
"""

from __future__ import annotations

import bisect
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from gradsmith.lab.process import device, torch_says
from gradsmith.lab.subject.target import has_setup_context
from gradsmith.profiling import lines
from gradsmith.profiling.bench import Bench, ReadyCall, graph
from gradsmith.profiling.events import Event, FunctionCalls, Phase, Recording, Saved, SeenMemory
from gradsmith.profiling.lines import Site
from gradsmith.source.spans import LoopSpan

_MASK_LIMIT = 1 << 22  # elements up to which a saved tensor is looked at for being a mask


# From 3.12 on, switching a trace function on and off instruments all code anew.
_CHEAP_TO_PAUSE = sys.version_info < (3, 12)


_WAITING = 20  # times longer than it works: a run that waits for something else ends, too


class TimeIsUp(BaseException):
    """The time is up; not an Exception, so that a user's `except Exception` does not swallow it."""


def record(bench: Bench, most_s: float | None = None) -> Recording:
    """One observed run, of at most so many seconds of work. What was seen before it failed or was stopped is kept, with the reason."""
    call = bench.call()
    recorder = Recorder(bench.target.path, most_s)
    recording = recorder.recording
    for name, tensor in call.copies.items():
        recording.inputs[recorder.storage_of(tensor)] = name
    try:
        with recorder.watching("forward"), torch.autograd.graph.saved_tensors_hooks(recorder.pack, _unpack):
            call.forward()
        _after_forward(call, recorder)
        if call.has_backward and not bench.forward_only:
            with recorder.watching("backward"):
                call.backward()
    except TimeIsUp:
        recording.stopped = "the time was up"
    except Exception as error:  # the user's code; what was measured before stays
        recording.stopped = f"{type(error).__name__}: {error}".splitlines()[0]
    return recording


@cache
def ready() -> None:
    """Enter the mode once: what torch imports the first time is not the user's time."""
    with Recorder(None, None):
        torch.ones(1)


class Recorder(TorchDispatchMode):
    """Writes a Recording while it is active."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Skipping means wrapping, and wrapping imports the whole compiler (816 modules, 2 s); nothing is compiled here.
        return False

    def __init__(self, home: str | None, most_s: float | None) -> None:
        super().__init__()
        self.home = home
        self.most_s = most_s
        self.recording = Recording()
        self.phase: Phase = "forward"
        self.clock = device.clock()
        self.work_clock = device.work_clock()
        self._began, self._began_work = self.clock(), time.thread_time()
        self._uids: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._refs: dict[int, Any] = {}
        self._count = itertools.count()
        self._live = 0
        self._iterations: dict[tuple[int, int], int] = {}  # (frame, line of the loop) -> iteration
        self._tick = itertools.count()
        self._sequence: list[int] = []
        self._sequence_events: list[int] = []

    @contextmanager
    def watching(self, phase: Phase) -> Iterator[None]:
        self.phase = phase
        before = sys.gettrace()
        sys.settrace(self._on_call)
        try:
            with self:
                yield
        finally:
            sys.settrace(before)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not _CHEAP_TO_PAUSE:
            return self._observed(func, args, kwargs)
        following = sys.gettrace()
        sys.settrace(None)  # the loops to be counted are the user's, not the recorder's own calls
        try:
            return self._observed(func, args, kwargs)
        finally:
            sys.settrace(following)

    def _is_late(self) -> bool:
        """Work counts, not the clock: beside other processes a run takes longer and is not stopped for it."""
        if self.most_s is None or (waited := self.clock() - self._began) <= self.most_s:
            return False
        return time.thread_time() - self._began_work > self.most_s or waited > _WAITING * self.most_s

    def _observed(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self._is_late():
            raise TimeIsUp
        kwargs = kwargs or {}
        frames = lines.stack(self.home, 3)
        module = lines.built_in(self.home, 3) if frames else ""
        reads, arguments = self._inputs(args, kwargs)
        start = self.work_clock()
        out = func(*args, **kwargs)
        end = self.work_clock()
        self._write_down(func, args, kwargs, frames, module, reads, arguments, out, start, end)
        return out

    def pack(self, tensor: Tensor) -> Tensor:
        sites = tuple(lines.site(f.f_code, f.f_lasti) for f in lines.stack(self.home))
        self.recording.saved.append(self.saved(tensor, "", sites[0] if sites else None))
        with torch._C._DisableTorchDispatch():
            return tensor.detach()  # the output itself would keep its own graph alive in a cycle

    def saved(self, tensor: Tensor, holder: str, site: Site | None, attribute: str = "") -> Saved:
        uid = self.storage_of(tensor)
        mask = False
        if tensor.is_floating_point() and 1 < tensor.numel() <= _MASK_LIMIT and uid not in self.recording.inputs:
            with torch._C._DisableTorchDispatch():
                flat = tensor.detach()
                # Of both: nothing but zeros is what an exponential of something large leaves.
                ones, zeros = flat == 1, flat == 0
                mask = bool((ones | zeros).all()) and bool(ones.any()) and bool(zeros.any())
        how = "ctx attribute" if attribute else "saved tensor"
        return Saved(
            uid,
            tensor.numel() * tensor.element_size(),
            tensor.untyped_storage().nbytes(),
            how,  # type: ignore[arg-type]
            holder,
            "input" if uid in self.recording.inputs else "intermediate",
            site,
            str(tensor.dtype).removeprefix("torch."),
            tuple(tensor.shape),
            attribute,
            mask,
        )

    def storage_of(self, tensor: Tensor) -> int:
        """A number for the memory behind a tensor that is never reused, unlike its address."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._uids:
            uid = self._uids[key] = next(self._count)
            size = self._sizes[uid] = storage.nbytes()
            self._live += size
            self.recording.peak_bytes = max(self.recording.peak_bytes, self._live)
            self._refs[key] = weakref.ref(storage, lambda _: self._freed(key, size))
        return self._uids[key]

    def _freed(self, key: int, size: int) -> None:
        self._live -= size
        self._uids.pop(key, None)
        self._refs.pop(key, None)

    def _write_down(
        self,
        func: Any,
        args: Any,
        kwargs: Any,
        frames: list[FrameType],
        module: str,
        reads: tuple[SeenMemory, ...],
        arguments: Any,
        out: Any,
        start: float,
        end: float,
    ) -> None:
        known = {a.storage for a in reads}
        outputs = tuple(self._access(t) for t in _tensors(out))
        fresh = tuple(dict.fromkeys(a.storage for a in outputs if a.storage not in known))
        mutated = tuple(self.storage_of(t) for t in _mutated(func, args, kwargs))
        sites, iterations, own = self._place(frames)
        node = torch._C._current_autograd_node()
        packet = func._overloadpacket
        flops = 0
        if packet in flop_registry:
            flops = int(flop_registry[packet](*args, **kwargs, out_val=out))
        event = Event(
            len(self.recording.events),
            packet.__name__,
            self.phase,
            sites,
            iterations,
            reads,
            outputs,
            mutated,
            arguments,
            not mutated and not fresh and bool(outputs),
            fresh,
            node.name() if node is not None else "",
            own,
            start,
            end - start,
            flops,
            torch.is_grad_enabled(),
            module,
        )
        if self.phase == "forward":
            self._sequence.append(torch._C._autograd._get_sequence_nr())
            self._sequence_events.append(event.index)
        elif not own and node is not None:
            self._adopt(event, int(node._sequence_nr()))
        self.recording.events.append(event)

    def count_call(self, cls: type, sequence: int) -> None:
        """One call of a custom Function, placed at the line that called it."""
        known = {f.name: f for f in self.recording.functions}
        if cls.__name__ in known:
            known[cls.__name__].count += 1
            return
        at = bisect.bisect_right(self._sequence, sequence)
        sites = self.recording.events[self._sequence_events[at]].sites if at < len(self._sequence) else ()
        callers = [s for s in sites if not s.function.startswith(f"{cls.__name__}.")]
        site = callers[0] if callers else (sites[-1] if sites else None)
        self.recording.functions.append(FunctionCalls(cls.__name__, 1, has_setup_context(cls), site))

    def _adopt(self, event: Event, sequence: int) -> None:
        """Give an operation of autograd the line of forward that made its node."""
        at = bisect.bisect_right(self._sequence, sequence)
        if event.node.endswith("CopySlices"):
            at -= 1  # the node of a write into a view is made after the write, those of other operations before
        if 0 <= at < len(self._sequence_events):
            parent = self.recording.events[self._sequence_events[at]]
            event.sites, event.iterations, event.parent = parent.sites, parent.iterations, parent.index

    def _place(self, frames: list[FrameType]) -> tuple[tuple[Site, ...], dict[LoopSpan, int], bool]:
        sites = tuple(lines.site(f.f_code, f.f_lasti) for f in frames)
        iterations: dict[LoopSpan, int] = {}
        for frame, site in zip(reversed(frames), reversed(sites)):  # outermost first; a dict keeps that order
            for loop in site.loops:
                tick = self._iterations.get((id(frame), loop.line))
                if tick is not None:
                    iterations[loop] = tick
        return sites, iterations, bool(frames)

    def _inputs(self, args: Any, kwargs: Any) -> tuple[tuple[SeenMemory, ...], Any]:
        reads: list[SeenMemory] = []
        rest: list[str] = []
        for value in (*args, *kwargs.values()):
            tensors = _tensors(value)
            if tensors:
                reads.extend(self._access(t) for t in tensors)
            else:
                rest.append(repr(value))
        return tuple(reads), tuple(rest)

    def _access(self, tensor: Tensor) -> SeenMemory:
        return SeenMemory(
            self.storage_of(tensor),
            int(tensor.storage_offset()),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.numel() * tensor.element_size(),
            _dtype(tensor.dtype),
        )

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if not lines.is_user_file(path, self.home):
            return None
        starts = lines.headers(path)

        def on_line(frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
            if event == "line":
                line = frame.f_lineno
                if line in starts:
                    self._iterations[id(frame), line] = next(self._tick)
            return on_line

        return on_line


def _after_forward(call: ReadyCall, recorder: Recorder) -> None:
    call.between()
    recording = recorder.recording
    recording.outputs = {recorder.storage_of(t) for t in call.outputs}
    for node in graph(call.outputs):
        cls = torch_says.forward_class(node)
        if cls is None:
            continue
        recorder.count_call(cls, int(node._sequence_nr()))
        for name, value in vars(node).items():
            for tensor in _tensors(value):
                recording.saved.append(recorder.saved(tensor, cls.__name__, None, name))
    recording.saved = [_with_output_role(s, recording.outputs) for s in recording.saved]


def _with_output_role(saved: Saved, outputs: set[int]) -> Saved:
    return replace(saved, role="output") if saved.storage in outputs and saved.role != "input" else saved


def _unpack(tensor: Tensor) -> Tensor:
    return tensor


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value] if value.layout == torch.strided else []
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


@cache
def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    arguments = enumerate(func._schema.arguments)
    return tuple((i, a.name) for i, a in arguments if a.alias_info is not None and a.alias_info.is_write)


def _mutated(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    values = [args[i] if i < len(args) else kwargs.get(name) for i, name in _written_arguments(func)]
    return [t for value in values for t in _tensors(value)]
