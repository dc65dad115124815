"""The moves, one kind of step per file."""
