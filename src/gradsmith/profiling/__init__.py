"""Why is it slow, and where did the memory go: clock, attribution, growth law, machine limits, remedies."""

from __future__ import annotations

from gradsmith.profiling.measuring import profile
from gradsmith.profiling.result import Profile
from gradsmith.profiling.step import profile_step

__all__ = ["Profile", "profile", "profile_step"]
