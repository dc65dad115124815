"""Derivatives that are more than one line of text, by topic."""

from gradsmith.deriving.structured import elementwise, idioms, indexing, kernels, moving, products, reducing
from gradsmith.deriving.structured.parts import of_parts
from gradsmith.deriving.structured.registry import RULES

__all__ = ["RULES", "elementwise", "idioms", "indexing", "kernels", "moving", "of_parts", "products", "reducing"]
