"""Foreign code with gradients: `gs.wrap` for functions on arrays, `gs.implicit` for solvers."""

from gradsmith.external.errors import (
    EvaluationLost,
    ExternalError,
    NotConverged,
    PoorGradientError,
    SingularSystem,
)
from gradsmith.external.quality import InputQuality, Statement
from gradsmith.external.solving import Implicit, implicit
from gradsmith.external.wrapping import Wrapped, wrap

__all__ = [
    "EvaluationLost",
    "ExternalError",
    "Implicit",
    "InputQuality",
    "NotConverged",
    "PoorGradientError",
    "SingularSystem",
    "Statement",
    "Wrapped",
    "implicit",
    "wrap",
]
