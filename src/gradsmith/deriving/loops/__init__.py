"""A `for` of forward that stays a `for`: its source made ready, its body read once, swept once, and printed twice."""
