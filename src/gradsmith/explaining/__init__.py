"""What an error of PyTorch means: which one it is, its cause, its remedy, and what lint says of the Function it names."""

from gradsmith.explaining.explanation import Explanation, explain
from gradsmith.explaining.raised import explain_errors

__all__ = ["Explanation", "explain", "explain_errors"]
