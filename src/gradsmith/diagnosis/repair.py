"""Diagnosis by repair: which single change to backward's source makes the gradient right?

The changed backward is run in place of the user's, on the same inputs, and compared with the truth for two random
grad_outputs; then at another example, for every input. What is right there only by accident is not advised. The user's file
is not touched.
"""

from __future__ import annotations

import ast
import copy
import inspect
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradsmith.diagnosis.case import Case, Fit
from gradsmith.diagnosis.mending.own_source import own_source
from gradsmith.diagnosis.mending.proof import elsewhere, no_worse
from gradsmith.diagnosis.mutate import Candidate, candidates, of_ctx
from gradsmith.findings import Edit
from gradsmith.lab import Run, forward
from gradsmith.lab.lab import Lab, same
from gradsmith.lab.once import once
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.endless import ended_after
from gradsmith.lab.run import normal_like
from gradsmith.lab.subject.foreign import runs_kernels
from gradsmith.source.edited import alike, function_at, parsed_after
from gradsmith.source.edits import replace
from gradsmith.source.loaded import definition_of, file_of

# A failing check may take a little longer to say what to write. The limits are work, not time on the clock: a report does
# not depend on what else the machine is doing, nor on the number of jobs.
_NAME = re.compile(r"[A-Za-z_]\w*")
_MOST_LINES = 20_000  # of one candidate: a loop whose condition was changed may never end
_MOST = 1500
_ELEMENTS = 30_000_000  # of inputs and outputs, over all candidates
_CPU_SECONDS = 6.0  # for a backward that loops in Python
_EXPENSIVE_SECONDS = 3.0  # where one run is dear, and whatever is proved takes hundreds of them


Offers = Callable[[ast.FunctionDef], Iterator[Candidate]]


@dataclass(frozen=True)
class Repair:
    kind: str
    before: str
    after: str
    line: int
    edit: Edit | None = None
    path: str | None = None  # of a kernel: it may stand in another file


def repaired(case: Case, kind: str) -> Fit | None:
    """The fit of one kind of repair; the search is done once per case."""
    repair = _repair(case)
    return _fit(repair) if repair is not None and repair.kind == kind else None


def any_repair(case: Case) -> Fit | None:
    """The fit of whatever change mends the gradient, for a cause that is known without it."""
    repair = _repair(case)
    return _fit(repair) if repair is not None else None


def edit_of(case: Case) -> Edit | None:
    """The small change that makes this gradient right, as an edit of the user's file."""
    repair = _repair(case)
    return repair.edit if repair is not None else None


def edit_with_ctx(case: Case) -> Edit | None:
    """The same with what forward keeps on ctx, for an option that backward takes for a constant, or leaves out."""
    source = own_source(case.lab.target.function) if case.lab.target.function is not None else None
    kept = source.attributes if source is not None else ()
    repair = _search(case, lambda tree: of_ctx(tree, kept)) if kept else None
    return repair.edit if repair is not None else None


def _repair(case: Case) -> Repair | None:
    repairs = _repairs(case.lab)
    key = (case.pair.leaf.position, case.pair.output)
    if key not in repairs:
        repairs[key] = _search(case)
    return repairs[key]


def _fit(repair: Repair) -> Fit:
    before, after = repair.before, repair.after
    return Fit(
        f"is right with `{after}` instead of `{before}` (line {repair.line})",
        f"Write `{after}` instead of `{before}` in line {repair.line}.",
        line=repair.line,
        path=repair.path,
        leaves_out=leaves_out(before, after),
    )


def leaves_out(before: str, after: str) -> bool:
    """Whether a change takes names away and brings none: what it takes away, somebody wrote on purpose.

    >>> leaves_out("x / (1 + norm(x))", "x"), leaves_out("x + y", "x - y"), leaves_out("2 * x", "x")
    (True, False, False)
    """
    return set(_NAME.findall(after)) < set(_NAME.findall(before))


@once
def _repairs(lab: Lab) -> dict[tuple[int, int], Repair | None]:
    """What was found so far, by position of the input and number of the output: a case is made for every cause."""
    return {}


def _search(case: Case, offers: Offers = candidates) -> Repair | None:
    cls = case.lab.target.function
    if cls is None or case.explains(case.claimed) or case.scale == 0:  # anything that vanishes would be right
        return None
    name = "backward" if "backward" in vars(cls) or not hasattr(cls, "vjp") else "vjp"
    original = inspect.unwrap(getattr(cls, name))
    tree = copy.deepcopy(definition_of(original))
    if tree is None:
        return None
    tree.decorator_list = []
    second = normal_like(case.v, case.lab.generator(31))
    wanted = case.truth_for(second)
    target, arguments = case.lab.precise
    run = forward(target, arguments, seed=case.lab.settings.seed)
    if torch_says.forward_class(run.outputs[case.pair.output].grad_fn) is not cls:
        return None
    elements = sum(t.numel() for t in (*run.passed.values(), *run.outputs))
    needed = _needed(run)
    writes = sum(t._version for t in needed)
    most, start_s = min(_MOST, _ELEMENTS // max(elements, 1)), time.thread_time()
    longest_s = _EXPENSIVE_SECONDS if case.lab.budget.expensive else _CPU_SECONDS
    for count, candidate in enumerate(offers(tree)):
        if count >= most or time.thread_time() - start_s > longest_s:
            break
        if sum(t._version for t in needed) != writes:  # the last candidate wrote into what the next ones need
            run = forward(target, arguments, seed=case.lab.settings.seed)
            needed = _needed(run)
            writes = sum(t._version for t in needed)
        function = compiled(candidate.tree, original)
        if function is None or not _gives(case, run, function, case.v, case.truth):
            continue
        right_again = wanted is None or _gives(case, run, function, second, wanted)
        if right_again and _is_linear(case, run, function) and _holds_elsewhere(case, function):
            edit = edit_for(candidate, original)
            if edit is not None and not _stands(case, edit):
                continue
            return Repair(candidate.kind, candidate.before, candidate.after, candidate.line, edit)
    return _in_kernel(case, original, second, wanted) if offers is candidates else None


def _stands(case: Case, edit: Edit) -> bool:
    """Is the change right as part of the class: no gradient is worse for it, and this one is right at other sizes, too?"""
    cls = case.lab.target.function
    source = own_source(cls) if cls is not None else None
    made = source.changed([edit]) if source is not None else None
    if made is None:
        return source is None
    others = [case.own] if case.own is not None else []
    wanted = (case.pair.leaf.position, case.pair.output)
    return all(no_worse(lab, made, wanted) for lab in (case.lab, *others)) and elsewhere(
        made, case.own or case.lab, [case.name], small=True
    )


def edit_for(candidate: Candidate, original: Callable[..., Any]) -> Edit | None:
    """The change as an edit: in parentheses where the text would otherwise mean something else."""
    file = file_of(original)
    if file is None:
        return None
    for text in (candidate.after, f"({candidate.after})"):
        edit = replace(file, candidate.old, text)
        changed = parsed_after(file.text, [edit])
        made = function_at(changed, candidate.tree.lineno) if changed is not None else None
        if made is not None and alike(made, candidate.tree):
            return edit
    return None


def _in_kernel(
    case: Case, backward: Callable[..., Any], second: torch.Tensor, wanted: torch.Tensor | None
) -> Repair | None:
    """The same search in the kernels that backward launched, for as long again."""
    if not runs_kernels(case.lab.target):
        return None
    from gradsmith.lab.triton.repairing import changed, kernels_of_backward, masks_in, names_in

    target, arguments = case.lab.precise
    run = forward(target, arguments, seed=case.lab.settings.seed)
    other = case.another  # before anything is changed
    start_s = time.thread_time()
    for kernel in kernels_of_backward(case.lab):
        tree = copy.deepcopy(definition_of(kernel))
        masks = masks_in(tree) if tree is not None else set()
        for candidate in candidates(tree) if tree is not None else ():
            if time.thread_time() - start_s > _CPU_SECONDS:
                return None
            if names_in(candidate.new) & masks - names_in(candidate.old):
                continue  # the mask of an access is 1 wherever it counts: as a number it says nothing
            try:
                with changed(kernel, candidate.tree):
                    fits = _gives(case, run, backward, case.v, case.truth)
                    fits = fits and (wanted is None or _gives(case, run, backward, second, wanted))
                    fits = fits and (other is None or _holds_elsewhere(case, backward))
            except Exception:  # a random change to somebody's code may raise anything
                continue
            if fits:
                path = kernel.__code__.co_filename
                return Repair(candidate.kind, candidate.before, candidate.after, candidate.line, path=path)
    return None


def _is_linear(case: Case, run: Run, function: Callable[..., Any]) -> bool:
    """Is the change right for a grad_output of another size, too? A comparison of grad_output may fit at one of them."""
    return all(_gives(case, run, function, times * case.v, times * case.truth) for times in (-1e3, 1e3, 1e-3))


def _holds_elsewhere(case: Case, function: Callable[..., Any]) -> bool:
    """Is the change right at another example, too? Where there is none to be had, the two grad_outputs have to do."""
    other = case.another
    if other is None:
        return True
    run = forward(*other.lab.precise, seed=other.lab.settings.seed)
    return _gives(other, run, function, other.v, other.truth)


def _needed(run: Run) -> list[torch.Tensor]:
    """Inputs, outputs, and what is saved for backward."""
    saved = [t for out in run.outputs for t in getattr(out.grad_fn, "saved_tensors", ())]
    return [*run.passed.values(), *run.outputs, *(t for t in saved if t is not None)]


def compiled(tree: ast.FunctionDef, original: Callable[..., Any]) -> Callable[..., Any] | None:
    scope = dict(getattr(original, "__globals__", {}))
    scope |= inspect.getclosurevars(original).nonlocals
    try:
        exec(compile(ast.Module([tree], []), "<repair>", "exec"), scope)
    except (SyntaxError, ValueError, TypeError):
        return None
    made: Callable[..., Any] = scope[tree.name]
    return made


def _gives(case: Case, run: Run, function: Callable[..., Any], v: torch.Tensor, truth: torch.Tensor) -> bool:
    """Call the changed backward on the live ctx, past the engine: a hundred candidates in the time of ten."""
    grad_outputs = [torch.zeros_like(out) if i != case.pair.output else v.clone() for i, out in enumerate(run.outputs)]
    try:
        files = (function.__code__.co_filename, case.lab.target.path or "")
        with torch.no_grad(), ended_after(_MOST_LINES, files):
            returned = function(run.outputs[case.pair.output].grad_fn, *grad_outputs)
        grads = returned if isinstance(returned, tuple) else (returned,)
        grad = grads[case.pair.leaf.position].sum_to_size(case.x.shape)
        right = case.matches(grad.double(), truth)
    except Exception:  # a random change to somebody's code may raise anything
        return False
    return right and (v is not case.v or _spares_others(case, grads))


def _spares_others(case: Case, grads: tuple[Any, ...]) -> bool:
    """What was right before is right after: a repair may not spoil the gradient of another input."""
    for pair in case.lab.gradient.pairs:
        if pair.output != case.pair.output or pair is case.pair or pair.status != "right":
            continue
        grad = grads[pair.leaf.position] if pair.leaf.position < len(grads) else None
        if grad is not None and not same(pair.claimed, grad.sum_to_size(pair.claimed.shape)):
            return False
    return True
