"""What is said of an examination beside its findings: why it proves nothing, and what was left out."""

from __future__ import annotations

from typing import Any

from gradsmith import catalog
from gradsmith.lab import Lab
from gradsmith.lab.measure.values import widened
from gradsmith.lab.run import Spent, at_first_look, out_of_time
from gradsmith.lab.subject.foreign import interpreter_note
from gradsmith.surrogate_kinds import frees

TIME = "the time for it was spent"


def inconclusive(lab: Lab) -> str:
    """Why the examination proves nothing, although nothing was found."""
    if lab.surrogate:
        # Of a kind that may return None, nothing has to flow.
        none_is_meant = any(r.outcome == "none" and frees(lab.surrogate, r.waived_by) for r in catalog.rules().values())
        return "" if lab.baseline.v or none_is_meant else "no output carries a gradient"
    judgement = lab.gradient
    if not judgement.pairs:
        if stored := judgement.run.not_computable:
            return f"torch does not compute in the type of the output, {_type_name(judgement.run.outputs[stored[0]])}"
        return "no output carries a gradient"
    if noisy := judgement.noisy:
        if not all(bool(widened(o).isfinite().any()) for o in judgement.run.outputs if o.numel()):
            return "the outputs are NaN or infinite at these inputs"
        names = ", ".join(dict.fromkeys(f"'{p.leaf.name}'" for p in noisy))
        return f"numeric noise is too wide to judge the gradient of {names}"
    return ""


def notes(lab: Lab) -> list[str]:
    """The notes of a report on this subject."""
    notes = interpreter_note(lab.target)
    # What `gs.wrap` measured of an approximate gradient is part of every report on it.
    if stated := getattr(lab.target.original, "__gradsmith_statement__", ""):
        notes.append(str(stated))
    if lab.left_out:
        notes.append(
            f"{lab.target.name}: these checks were left out, because {why_left_out(lab)}: {', '.join(lab.left_out)}"
        )
    judgement = lab.__dict__.get("gradient")
    if judgement is not None:
        if _draws(lab):
            notes.append(f"{lab.target.name}: forward draws random numbers; it was checked under a replayed seed")
        for o in judgement.run.not_computable if judgement.pairs else ():
            kind = _type_name(judgement.run.outputs[o])
            notes.append(
                f"{lab.target.name}: the gradient through {judgement.run.output_names[o]} was not judged: torch does not "
                f"compute in {kind}"
            )
        if undone := [p for p in judgement.pairs if p.undone]:
            names = ", ".join(dict.fromkeys(f"'{p.leaf.name}'" for p in undone))
            off, bound = max(p.off for p in undone), max(p.undone for p in undone)
            notes.append(
                f"{lab.target.name}: the gradient of {names} is right for the limit of the loop in forward. It differs by "
                f"{off:.1g} from the derivative of the passes that forward makes, and the loop stops up to {bound:.1g} too early"
            )
        corners = sum(len(p.corners) for p in judgement.pairs)
        if corners:
            notes.append(f"{lab.target.name}: {corners} corner(s) judged by the interval of their one-sided slopes")
        if singular := [f"{p.leaf.name}{list(at)}" for p in judgement.pairs for at in sorted(p.singular)]:
            told = ", ".join(dict.fromkeys(singular[:5]))
            notes.append(f"{lab.target.name}: forward has no finite slope at {told}: left out, the others were judged")
    return notes


def _draws(lab: Lab) -> bool:
    """Whether forward draws random numbers, as far as there is time to find out: what was judged stays judged."""
    try:
        return lab.stochastic
    except Spent:
        return "watched" in vars(lab) and lab.watched.draws


def why_left_out(lab: Lab) -> str:
    return TIME if out_of_time() or at_first_look() else lab.budget.words


def _type_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
