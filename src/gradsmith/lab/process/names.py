"""What code keeps under names (attributes of classes and modules, globals), put back after a run that is not a real one."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

_Container = dict[Any, Any] | list[Any] | set[Any]


def owners_of(*roots: Any) -> list[Any]:
    """Where the code of these functions, classes and modules can keep something: themselves and the files they stand in."""
    found: list[Any] = []
    for root in roots:
        if isinstance(root, nn.Module):
            found += [*root.modules(), *(type(m) for m in root.modules())]
        elif isinstance(root, type):
            found += root.__mro__
        else:
            found.append(root)
    ours = [owner for owner in found if not _home(owner).startswith("torch") and _home(owner) != "builtins"]
    files = [sys.modules[name] for name in map(_home, ours) if name in sys.modules]
    return list({id(owner): owner for owner in (*ours, *files) if hasattr(owner, "__dict__")}.values())


@contextlib.contextmanager
def kept_names(owners: list[Any]) -> Iterator[None]:
    """Afterwards every name of theirs means what it did, and every container under one holds what it held."""
    before = [(owner, dict(vars(owner))) for owner in owners]
    containers = [
        (value, _copy(value)) for _, names in before for value in names.values() if isinstance(value, (dict, list, set))
    ]
    # Every file has Python's own names under `__builtins__`: they are not the file's, and nothing runs while they are gone.
    containers = [(value, content) for value, content in containers if value is not vars(builtins)]
    try:
        yield
    finally:
        for owner, names in before:
            _restore(owner, names)
        for container, content in containers:
            _refill(container, content)


def _restore(owner: Any, names: dict[str, Any]) -> None:
    now = dict(vars(owner))
    put: Callable[[str, Any], None] = (
        (lambda name, value: setattr(owner, name, value)) if isinstance(owner, type) else vars(owner).__setitem__
    )
    for name in now.keys() - names.keys():
        if isinstance(owner, type):
            delattr(owner, name)
        else:
            del vars(owner)[name]
    for name, value in names.items():
        if name not in now or now[name] is not value:
            put(name, value)


def _copy(container: _Container) -> _Container:
    return dict(container) if isinstance(container, dict) else type(container)(container)


def _refill(container: Any, content: Any) -> None:
    same = len(container) == len(content) and all(a is b for a, b in zip(_parts(container), _parts(content)))
    if same:
        return
    container.clear()
    (container.extend if isinstance(container, list) else container.update)(content)


def _parts(container: _Container) -> Iterator[Any]:
    if isinstance(container, dict):
        for key, value in container.items():
            yield key
            yield value
    else:
        yield from container


def _home(owner: Any) -> str:
    cls = owner if isinstance(owner, type) or hasattr(owner, "__code__") else type(owner)
    return str(getattr(cls, "__module__", None) or "")
