"""Try proposals, the likeliest combination first, until forward runs and every gradient can be judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradsmith.inputs.guess.asked import asked, beyond_the_end, lines_reached
from gradsmith.inputs.guess.callers import passed_by_callers
from gradsmith.inputs.guess.candidates import Sizes, candidates, written_frames
from gradsmith.inputs.guess.cheapest import cheapest
from gradsmith.inputs.guess.clues import NOTHING, Clue, clues
from gradsmith.inputs.guess.functions import Written
from gradsmith.inputs.guess.hints import Hint, hints, named_in
from gradsmith.inputs.guess.layers import frames_of, precision_of
from gradsmith.inputs.guess.mending import Failed, mended, without_sizes
from gradsmith.inputs.guess.objects import fitting, foreign_attributes, parameters_of
from gradsmith.inputs.guess.proposals import FRAMES, Frame, Proposal, made
from gradsmith.inputs.guess.subclasses import classes_of, with_subclasses
from gradsmith.inputs.guess.trial import (
    NO_GRADIENT,
    TriedGuess,
    alike,
    improve,
    improved_for_backward,
    outcome,
    split,
    without_warning,
)
from gradsmith.lab.explore.questions import blamed
from gradsmith.lab.explore.tape import OPERATIONS, OperationTape
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.alone import join_alone
from gradsmith.lab.process.eager import uncompiled
from gradsmith.lab.process.state import preserved, seed_all, sparse_checked
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.code import as_code, sayable
from gradsmith.lab.subject.foreign import runs_kernels
from gradsmith.lab.subject.standins import StandInUsed
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import put_together

# Limits are counted in attempts, so that the same seed finds the same inputs on a busy machine.
ATTEMPTS = 2048.0  # for one subject; the median guess needs a few
_OF_A_CALLER = 1024.0
_OPERATIONS = 64  # of forward, that cost as much as an attempt
_BACKWARD = 3  # attempts that cost as much as a forward that ran, and its backward
_SKIPPED = 1 / 32  # the cost of a combination that is known to fail
_NET = 60.0  # seconds of processor time, for code that is slow without running operations of torch
_FRAME_COST = 1.6
_TUPLE_COST = 1.0  # functions that answer with a tuple
_RESCUES = 6
_HOPELESS = 40  # attempts that fail in a way which does not depend on the inputs
_FARTHEST = 6  # failures kept, to change the shapes of
_MENDING = 400  # attempts with other shapes
_IN_VAIN = 128.0  # where an input has to be what nothing here is; a branch may do without it
# Attributes of what is proposed anyway: lists, words, numbers, shapes, dtypes, modules, functions.
_COMMON = (
    frozenset(
        name for kind in (list, dict, str, int, torch.Size, torch.nn.Linear, type(lambda: 0)) for name in dir(kind)
    )
    | frozenset(dir(torch.float64))
    | frozenset(dir(torch.device("cpu")))
)
_STARRED = (2, 1, 3, 0)  # how many values to try for *args


@dataclass
class Guess:
    """What the search came to: inputs that work, or what was tried."""

    args: tuple[Any, ...] | None
    kwargs: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    attempts: int = 0
    seconds: float = 0.0
    trouble: str = ""  # why the best attempt is not a good one
    errors: list[str] = field(default_factory=list)
    caller: str = ""  # the code of the same module that passes these inputs on
    needs: str = ""  # what an input has to be, where nothing here is like that

    @property
    def works(self) -> bool:
        return self.args is not None


@dataclass
class _Search:
    target: Target
    seed: int
    dtype: torch.dtype
    device: torch.device
    budget: float  # attempts, for each look
    spent: float = 0.0  # attempts, dearer ones counted as several
    limit: float = 0.0  # of what is spent, for this number of inputs
    net: float = 0.0  # processor time at which the search ends, whatever is left
    keywords: tuple[str, ...] = ()  # the last values are passed by these names
    attempts: int = 0
    best: TriedGuess | None = None
    refused: int = 0
    refusal: str = ""  # what no other inputs would change
    rescues: int = 0  # how often other shapes and kinds were tried because backward did not answer
    starred: frozenset[int] = frozenset()  # the places of `*args`
    frames: Sequence[Frame] = FRAMES
    classes: list[type[torch.Tensor]] = field(default_factory=list)  # subclasses that inputs may be of
    farthest: list[Failed] = field(default_factory=list)  # of this number of inputs, one for each error
    errors: dict[str, int] = field(default_factory=dict)
    may_join: bool = False  # this process may become a group of one, where forward asks for a group
    tried: set[tuple[Any, ...]] = field(default_factory=set)

    @property
    def over(self) -> bool:
        return self.spent > self.limit or time.process_time() > self.net


def guess(
    target: Target, *, seed: int = 0, attempts: float = ATTEMPTS, device: Any = None, may_join: bool = False
) -> Guess:
    """Inputs for a subject nobody declared inputs for; `may_join`: this process may become a group of one.

    >>> from gradsmith.lab.subject.target import resolve
    >>> guess(resolve(torch.tanh)).works
    False
    """
    start = time.monotonic()
    found = clues(target)
    if not found:
        return Guess(None, errors=["its signature cannot be read"])
    wide = torch.float32 if runs_kernels(target) else torch.float64
    objects = {clue.name: objects for clue in found if (objects := _objects(target, clue))}
    needs = _needs(found, objects, gradient=False)
    search = _Search(target, seed, wide, torch.device(device or "cpu"), min(attempts, _IN_VAIN) if needs else attempts)
    needs = needs or _needs(found, objects, gradient=True)
    search.may_join = may_join
    search.net = time.process_time() + _NET
    search.classes = classes_of(target)
    if target.module is not None:
        search.frames, search.dtype = frames_of(target.module), precision_of(target.module)
    with preserved(), sparse_checked():
        _look(search, found, objects)
        settled = search.best is not None and (search.best.good or search.refused >= _HOPELESS)
        for dtype in _other_dtypes(search) if not settled and search.budget > _IN_VAIN else ():
            search.dtype, search.budget = dtype, search.budget / 2
            search.tried.clear()
            _look(search, found, objects)
            if search.best is not None and search.best.good:
                break
        if search.best is None and device is None and torch.cuda.is_available():
            search.device, search.budget = torch.device("cuda"), attempts
            search.tried.clear()
            _look(search, found, objects)
        good = search.best is not None and search.best.good
        if not good and (passed := _passed_by_callers(search)):
            return replace(passed, attempts=search.attempts, seconds=time.monotonic() - start)
    return replace(_result(search, time.monotonic() - start), needs=needs)


def _other_dtypes(search: _Search) -> list[torch.dtype]:
    """What forward asks for instead of float64: float32 where it speaks of dtypes, half precision where it names it."""
    single = any(torch_says.speaks_of_dtype(e) for e in search.errors) and search.dtype != torch.float32
    named = {word for e in search.errors if (word := torch_says.floating_named(e)) is not None}
    return [*([torch.float32] if single else []), *(getattr(torch, word) for word in sorted(named))]


def _needs(found: list[Clue], objects: dict[str, list[Any]], *, gradient: bool) -> str:
    """What has to be given and nothing here can be: an object with attributes that no class of the package has."""
    for clue in found:
        foreign = foreign_attributes(clue.uses) - _COMMON
        must = clue.default is NOTHING and not clue.declared.optional and not clue.starred
        if must and foreign and clue.name not in objects and bool(clue.gradient) is gradient:
            return f"'{clue.name}' must have {' and '.join(sorted(foreign))}, and nothing that has it could be built"
    return ""


def _passed_by_callers(search: _Search) -> Guess | None:
    """What a caller of the Function passes to it, if that makes every gradient visible."""
    for passed in passed_by_callers(search.target, search.seed, _OF_A_CALLER):
        chosen = [Proposal(0, value=a) for a in passed.args]
        with uncompiled():
            tried = outcome(search.target, FRAMES[0], chosen, search.dtype, passed.args, search.seed)
        if tried.good and tried.args is not None:
            given = Arguments.of(tried.args)
            return Guess(tried.args, {}, as_code(given) if sayable(given) else "", caller=passed.caller)
    return None


def _result(search: _Search, seconds: float) -> Guess:
    errors = sorted(search.errors, key=lambda e: (e != search.refusal, -search.errors[e]))[:3]
    if search.best is None:
        return Guess(None, {}, "", search.attempts, seconds, errors=errors)
    best = search.best
    args, kwargs = split(best.args or (), search.keywords)
    return Guess(args, kwargs, best.code(search.keywords), search.attempts, seconds, best.trouble, errors)


def _look(search: _Search, found: list[Clue], objects: dict[str, list[Any]]) -> None:
    search.keywords = tuple(clue.name for clue in found if clue.keyword)
    said = [count for clue in found for count in clue.counts]
    said += [len(parameters_of([each[0] for each in objects.values()]))] if objects else []
    counts = list(dict.fromkeys([*said, *_STARRED])) if any(clue.starred for clue in found) else [1]
    began = search.spent
    for count in counts:
        if search.spent > began + 1.5 * search.budget:
            return
        search.limit = search.spent + search.budget / min(len(counts), 2)
        search.refused = 0  # another number of inputs may be what backward returns gradients for
        before = dict(search.errors)
        flat = [clue for each in found for clue in [each] * (count if each.starred else 1)]
        search.starred = frozenset(i for i, clue in enumerate(flat) if clue.starred)
        for rank, clue in enumerate(clue for clue in found if clue.counting):
            together = [0, 1, count] if rank else [count, 1, 0]  # they count all of them
            clue.constants = list(dict.fromkeys([*together, *clue.constants]))
        if flat:
            search.farthest = []
            names, limit = [clue.name for clue in flat], search.limit
            for part in (0.25, 1.0):  # what errors ask for is tried before all that is less likely
                search.limit = limit - (1 - part) * (limit - search.spent) if part < 1 else limit
                _combine(search, flat, objects)
                if search.best is not None and search.best.rank > 1:
                    break
                _mend(search, names)
                if search.best is not None and search.best.good:
                    break
        if search.best is not None and search.best.good:
            return
        heard = (error for error, times in search.errors.items() if times > before.get(error, 0))
        more = max(map(torch_says.arguments_missing, heard), default=0) if search.starred else 0
        if more and count + more not in counts:  # `*args` goes on to a function that wants so many
            counts.insert(counts.index(count) + 1, count + more)


def _objects(target: Target, clue: Clue) -> list[Any]:
    """Objects that the subject's own code can use as it uses this input; none for what may be a tensor or a function."""
    used = clue.uses
    only_called = used.called and not used.attributes
    if clue.gradient or clue.starred or clue.declared.holds_tensors:
        return []
    if not clue.classes and not used.keys and (clue.tensor or only_called):
        return []
    home = target.function or (type(target.module) if target.module is not None else target.original)
    return fitting(used, getattr(home, "__module__", ""), clue.classes)


def _combine(search: _Search, found: list[Clue], objects: dict[str, list[Any]]) -> None:
    sizes = Sizes()
    values = [candidates(clue, sizes, objects.get(clue.name, ())) for clue in found]
    options = [with_subclasses(clue, each, search.classes) for clue, each in zip(found, values)]
    needed = max(clue.least for clue in found)
    frames = sorted([*written_frames(found, sizes), *search.frames], key=lambda frame: len(frame.x) < needed)
    heeded: set[tuple[int, str]] = set()
    names = [clue.name for clue in found]
    while hint := _walk(search, frames, options, names, heeded):
        # What an error asks for comes first from now on, in whatever it is combined with.
        heeded.add((hint.position, hint.what))
        options[hint.position] = hint.heeded(options[hint.position])


def _mend(search: _Search, names: list[str]) -> None:
    """Other shapes for the attempts that came farthest, as their errors ask for them."""
    if search.refused >= _HOPELESS:
        return
    until = search.attempts + min(_MENDING, search.budget)

    def attempt(chosen: list[Proposal], frame: Frame) -> Failed | None:
        if time.process_time() > search.net or search.attempts >= until:
            return None
        args = _arguments(search, frame, chosen)
        if args is None:
            return Failed(-1, tuple(chosen), frame, "", frozenset())
        before = search.farthest
        search.farthest = []
        _attempt(search, frame, chosen, args, names)
        failed, search.farthest = search.farthest, before
        good = search.best is not None and search.best.good
        return None if good else failed[0] if failed else Failed(0, tuple(chosen), frame, "", frozenset())

    mended(search.farthest, attempt)


def _walk(
    search: _Search,
    frames: Sequence[Frame],
    options: list[list[Proposal]],
    names: list[str],
    heeded: set[tuple[int, str]],
) -> Hint | None:
    """Try one combination after the other, up to the first hint that was not heeded yet."""
    dead: list[frozenset[tuple[int, int]]] = []  # choices that failed together
    answers = [0.0, _TUPLE_COST] if any(isinstance(p.value, Written) for o in options for p in o) else [0.0]
    costs = [[_FRAME_COST * i for i in range(len(frames))], answers, *[[p.cost for p in o] for o in options]]
    for choice in cheapest(costs):
        if search.over or search.refused >= _HOPELESS:
            return None
        held = set(enumerate(choice))
        if any(failed <= held for failed in dead):
            search.spent += _SKIPPED
            continue
        frame, chosen = frames[choice[0]], [o[i] for o, i in zip(options, choice[2:])]
        if choice[1]:  # all functions answer with a tuple, or none does
            chosen = [replace(p, value=p.value.as_tuple()) if isinstance(p.value, Written) else p for p in chosen]
        again = (frame, *((p.kind, p.form, p.domain, p.dtype, repr(p.value)) for p in chosen))
        args = None if again in search.tried else _arguments(search, frame, chosen)
        if args is None:
            search.spent += _SKIPPED
            continue
        search.tried.add(again)
        failure = _attempt(search, frame, chosen, args, names)
        if search.best is not None and search.best.good:
            return None
        for hint in failure.hints:
            known = (hint.position, hint.what) in heeded
            if not known and _is_news(hint, options[hint.position]):
                return hint
        if failure.origins:
            plain = {i for i, p in enumerate(chosen) if not p.is_tensor}
            dead.append(
                frozenset({*list(enumerate(choice))[:2], *((i + 2, choice[i + 2]) for i in failure.origins | plain)})
            )
    return None


def _is_news(hint: Hint, options: list[Proposal]) -> bool:
    """Worth starting again for. That a value has to be given is no news where None was not the likeliest."""
    if hint.what == "given" and options[0].value is not None:
        return False
    return any(map(hint.wanted, options))


def _arguments(search: _Search, frame: Frame, chosen: Sequence[Proposal]) -> tuple[Any, ...] | None:
    generator = torch.Generator().manual_seed(search.seed)
    args = tuple(made(p, frame, search.dtype, generator) for p in chosen)
    if any(a is NotImplemented for a in args):
        return None
    # As many values behind a module as it has parameters are these parameters.
    own = parameters_of([a for i, a in enumerate(args) if i not in search.starred])
    if own and len(own) == len(search.starred):
        given = iter(own)
        args = tuple(next(given) if i in search.starred else a for i, a in enumerate(args))
    if search.device.type == "cpu":
        return args
    return tuple(_on(search.device, a) for a in args)


def _on(device: torch.device, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    return value


@dataclass(frozen=True)
class _Failure:
    """The inputs of the operation that raised, and what the error says would have been right."""

    origins: frozenset[int] = frozenset()
    hints: list[Hint] = field(default_factory=list)


def _attempt(
    search: _Search, frame: Frame, chosen: list[Proposal], args: tuple[Any, ...], names: list[str]
) -> _Failure:
    """One forward, and where it runs one backward."""
    search.attempts += 1
    tape = OperationTape(limit=OPERATIONS, calls_only=True)
    tape.follow(dict(enumerate(args)))
    seed_all(search.seed)
    try:
        with torch.no_grad(), uncompiled(), tape:
            given, named = split(args, search.keywords)
            search.target.call(*put_together(given), **named)
    except Exception as error:  # whatever the user's code thinks of a wrong guess
        said = str(error).strip().replace(f"'{Written.__name__}'", "'function'")
        text = f"{type(error).__name__}: {said.splitlines()[0] if said else ''}"
        search.errors[text] = search.errors.get(text, 0) + 1
        if search.may_join and torch_says.wants_group(text) and join_alone():
            return _attempt(search, frame, chosen, args, names)
        miscounted = bool(search.starred) and torch_says.arguments_missing(text) > 0
        if isinstance(error, StandInUsed) or torch_says.cannot_run_here(text) or miscounted:
            search.refused += 1
            search.refusal = search.refusal if miscounted else text
        search.spent += 1 + len(tape.operations) / _OPERATIONS
        accused = blamed(tape)
        if torch_says.wants_complex(text) and (wider := _complex(search, frame, chosen, accused)):
            return _attempt(search, frame, *wider, names)
        places = accused or named_in(said, names)
        larger = beyond_the_end(said, args, places or range(len(args)))
        suits = not torch_says.values_do_not_suit(text)
        if suits or larger:
            reached = len(tape.operations) + lines_reached(error, search.target)
            _keep(search, Failed(reached, tuple(chosen), frame, said, places, larger or asked(error, args)))
        if suits:
            return _Failure(accused, hints(error, names, args, chosen, accused))
    search.spent += _BACKWARD * (1 + len(tape.operations) / _OPERATIONS)
    with uncompiled():
        tried = outcome(search.target, frame, chosen, search.dtype, args, search.seed, search.keywords)
    search.refused += tried.rank == 1 and _no_input_helps(tried.trouble)
    if tried.rank == 1 and not _no_input_helps(tried.trouble):
        _keep(search, Failed(len(tape.operations) + 1, tuple(chosen), frame, tried.trouble, frozenset()))
    if (
        tried.rank == 1
        and torch_says.values_do_not_suit(tried.trouble)
        and (search.best is None or search.best.rank < 2)
    ):
        tried = improve(search.target, tried, search.seed, search.keywords)
    elif tried.rank == 1 and search.rescues < _RESCUES:
        search.rescues += 1
        tried = improved_for_backward(search.target, tried, search.frames, search.seed, search.keywords)
    elif not tried.good and tried.rank != 1 and (search.best is None or search.best.rank <= max(tried.rank, 1)):
        tried = improve(search.target, tried, search.seed, search.keywords)
    if tried.good and tried.warning:
        tried = without_warning(search.target, tried, search.seed, search.keywords)
    if not tried.good and any(p.kind == "wrapped" for p in chosen):
        # What the constructor lets pass need not be what the class is for: no complaint may rest on that.
        search.errors[tried.trouble] = search.errors.get(tried.trouble, 0) + 1
        return _Failure()
    if tried.args is not None and (search.best is None or tried.rank > search.best.rank):
        search.best = alike(search.target, tried, search.seed, search.keywords) if tried.good else tried
    return _Failure()


def _keep(search: _Search, failed: Failed) -> None:
    """Among the failures that came farthest, each error once, whatever the sizes in it."""
    words = without_sizes(failed.text)
    same = next((other for other in search.farthest if without_sizes(other.text) == words), None)
    if same is not None and same.reached >= failed.reached:
        return
    kept = [other for other in search.farthest if other is not same]
    search.farthest = sorted([*kept, failed], key=lambda f: -f.reached)[:_FARTHEST]


def _complex(
    search: _Search, frame: Frame, chosen: list[Proposal], origins: frozenset[int]
) -> tuple[list[Proposal], tuple[Any, ...]] | None:
    """The inputs that forward wants the imaginary part of as complex numbers."""
    wider = [replace(p, kind="complex") if i in origins and p.kind == "floating" else p for i, p in enumerate(chosen)]
    args = _arguments(search, frame, wider) if wider != chosen else None
    return (wider, args) if args is not None else None


def _no_input_helps(trouble: str) -> bool:
    """The wrong number of gradients, none at all, none yet, or a missing package: that does not depend on the inputs."""
    if torch_says.gradients_returned(trouble) is not None or torch_says.cannot_run_here(trouble):
        return True
    return any(word in trouble for word in (NO_GRADIENT, NotImplementedError.__name__, StandInUsed.__name__))


__all__ = ["Guess", "guess"]
