"""Why a rung of the ladder cannot serve a step: one sentence, shown by `.plan()`."""

from __future__ import annotations


class Refused(Exception):
    """This rung cannot run this step; the next one will."""
