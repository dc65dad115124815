"""Which classes are defined in this process. Imports nothing, because recording asks before anything of the lab is loaded."""

from __future__ import annotations

from collections.abc import Iterator


def subclasses(cls: type) -> Iterator[type]:
    """Every class that derives from this one, once.

    >>> class A: ...
    >>> class B(A): ...
    >>> [found.__name__ for found in subclasses(A)]
    ['B']
    """
    seen: set[type] = set()
    stack: list[type] = list(type.__subclasses__(cls))
    while stack:
        found = stack.pop()
        if found not in seen:
            seen.add(found)
            yield found
            stack.extend(type.__subclasses__(found))
