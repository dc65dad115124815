"""Arguments that are lists or tuples of tensors: a Function takes every tensor as an argument of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from gradsmith.deriving.node import Node

Path = tuple[int, ...]


@dataclass
class Containers:
    """The arguments of the user's function that hold tensors, and where each input of the Function stands in them."""

    whole: dict[str, Any] = field(default_factory=dict)  # of the example, by the name of the argument
    places: dict[str, tuple[str, Path]] = field(default_factory=dict)  # by the name of the input

    def named(self, inputs: Mapping[Any, Node]) -> dict[str, Node]:
        """The inputs by name; one inside of a container is called as forward calls it, or by its place."""
        found: dict[str, Node] = {}
        taken = {key for key in inputs if isinstance(key, str)}
        for key, node in inputs.items():
            if isinstance(key, str):
                found[key] = node
                continue
            argument, path = key
            by_place = "_".join((argument, *map(str, path)))
            name = node.name if node.name and node.name not in taken else by_place
            while name in taken:
                name += "_"
            node.name = name
            taken.add(name)
            found[name], self.places[name] = node, key
        return found

    def flat(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The user's arguments as those of the Function."""
        found = {name: value for name, value in arguments.items() if name not in self.whole}
        for name, (argument, path) in self.places.items():
            value = arguments[argument]
            for i in path:
                value = value[i]
            found[name] = value
        return found

    def packed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The user's function as one of the Function's arguments, by name."""
        if not self.whole:
            return call
        places = {place: name for name, place in self.places.items()}

        def packed_call(**given: Any) -> Any:
            def built(value: Any, argument: str, path: Path) -> Any:
                if (argument, path) in places:
                    return given[places[argument, path]]
                if isinstance(value, (tuple, list)):
                    return rebuilt(value, [built(v, argument, (*path, i)) for i, v in enumerate(value)])
                return value

            plain = {name: value for name, value in given.items() if name not in self.places}
            return call(**plain, **{name: built(value, name, ()) for name, value in self.whole.items()})

        return packed_call

    def written(self, name: str) -> str:
        """How the user's function writes an input: `blocks[0][1]`."""
        if name not in self.places:
            return name
        argument, path = self.places[name]
        return argument + "".join(f"[{i}]" for i in path)

    def passed(self, arguments: list[str]) -> list[str]:
        """The inputs as the wrapper hands them on: `*pair` where all of a container goes."""
        found: list[str] = []
        for name in arguments:
            argument, path = self.places.get(name, ("", ()))
            text = f"*{argument}" if len(path) == 1 and self._only_tensors(argument) else self.written(name)
            if text not in found:
                found.append(text)
        return found

    def _only_tensors(self, argument: str) -> bool:
        return sum(a == argument for a, _ in self.places.values()) == len(self.whole[argument])

    def lengths(self) -> Iterator[tuple[str, int]]:
        """(text, length) of every container, also inside of others."""
        for name, value in self.whole.items():
            yield from _lengths(name, value)


def _lengths(text: str, value: Any) -> Iterator[tuple[str, int]]:
    if isinstance(value, (tuple, list)):
        yield text, len(value)
        for i, inner in enumerate(value):
            yield from _lengths(f"{text}[{i}]", inner)


def holds_tensors(value: Any) -> bool:
    """Is this a list or tuple with a tensor in it, however deep?"""
    return isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) or holds_tensors(v) for v in value)


def rebuilt(example: Any, parts: list[Any]) -> Any:
    """The parts in a container of the same kind."""
    return type(example)(*parts) if hasattr(example, "_fields") else type(example)(parts)
