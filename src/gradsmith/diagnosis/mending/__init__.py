"""From a wrong gradient to a proved edit of the user's source: `mended` gives it, or nothing.

`own_source` is the user's class as text, `hand` what its backward has at hand, `rewriting` puts derived lines in their place, and
`proof` runs the changed class where the old one was refuted.
"""
