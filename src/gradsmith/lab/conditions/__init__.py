"""Conditions of real use: compile, vmap, autocast, checkpoint, hooks, threads, copies, distributed, Triton.

Each condition runs the subject as somebody's model would, compares with the plain run, and fills its column of the
compatibility matrix: works / fails / not supported / not tried, with the reason.
"""
