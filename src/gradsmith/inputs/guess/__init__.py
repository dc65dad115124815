"""Guessed inputs: propose values from names, annotations, defaults and the body, run forward, keep what works."""

from __future__ import annotations

from gradsmith.inputs.guess.search import Guess, guess

__all__ = ["Guess", "guess"]
