"""Moves: each file holds the steps of one kind, and `moves(lab, arguments)`, which finds those that an example allows."""
