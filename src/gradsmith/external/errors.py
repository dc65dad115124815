"""What can go wrong with foreign code, each with its own name."""

from __future__ import annotations

from gradsmith.findings import GradsmithError


class ExternalError(GradsmithError):
    """Foreign code did something that leaves no gradient. The text says what, and what to write instead."""


class PoorGradientError(ExternalError):
    """The gradient is further from the derivative than was accepted. The text is the statement of its quality."""


class EvaluationLost(ExternalError):
    """An evaluation did not come back: its worker died, or the time limit passed. No gradient is made without it."""


class NotConverged(ExternalError):
    """The solver did not reach a solution, so the implicit gradient has no meaning there."""


class SingularSystem(ExternalError):
    """The solution does not move smoothly with its parameters: the linear system of the backward pass is singular."""
