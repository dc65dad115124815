"""From one example to many: other sizes, options, indices, values and precisions that forward accepts.

The author's example says what is meant; a variation keeps to it as far as it can. What forward rejects is listed, not
judged; what only backward rejects, or gets wrong, is for a rule to report.
"""

from __future__ import annotations

from gradsmith.lab.explore.variations.judging import Outcome, Variation, tried

__all__ = ["Outcome", "Variation", "tried"]
