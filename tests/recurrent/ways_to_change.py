"""Ways to change what a step sees. Each yields a step, changes something, and yields a step again.

The step multiplies its state by 0.5 at first and by 2.0 afterwards, however it comes by the number: so a plan that is
kept although it no longer holds gives a wrong result. Whatever a way changes outside of itself it puts back.
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import contextvars
import dataclasses
import decimal
import enum
import fractions
import functools
import itertools
import math
import operator
import os
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Way = Callable[[], Iterator[Any]]
WAYS: dict[str, Way] = {}


def way(make: Any) -> Any:
    WAYS[make.__name__] = make
    return make


def reading(get: Callable[[], Any]) -> Any:
    """A step that multiplies its state by what `get` returns."""

    def step(x: Tensor, h: Tensor) -> Any:
        h = get() * h + x
        return h, h

    return step


def source(text: str, name: str = "user", **values: Any) -> Any:
    """A module of the user's."""
    made: Any = types.ModuleType(name)
    vars(made).update(values)
    exec(compile(text, f"/home/user/{name}.py", "exec"), vars(made))
    return made


STEP = "def step(x, h):\n    h = {} * h + x\n    return h, h\n"


@contextlib.contextmanager
def put(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


# -- names


@way
def closure() -> Iterator[Any]:
    gain = 0.5
    yield reading(lambda: gain)
    gain = 2.0
    yield reading(lambda: gain)


@way
def closure_of_the_same_step() -> Iterator[Any]:
    gain = 0.5
    step = reading(lambda: gain)
    yield step
    gain = 2.0
    yield step


@way
def closure_cell_contents() -> Iterator[Any]:
    gain = 0.5

    def get() -> float:
        return gain

    step = reading(get)
    yield step
    get.__closure__[0].cell_contents = 2.0  # type: ignore[index]
    yield step


@way
def a_global() -> Iterator[Any]:
    user = source("gain = 0.5\n" + STEP.format("gain"))
    yield user.step
    user.gain = 2.0
    yield user.step


@way
def a_global_that_appears() -> Iterator[Any]:
    user = source(
        "def get():\n    try:\n        return gain\n    except NameError:\n        return 0.5\n" + STEP.format("get()")
    )
    yield user.step
    user.gain = 2.0
    yield user.step


@way
def a_global_that_hides_a_builtin() -> Iterator[Any]:
    user = source(STEP.format("abs(0.5)"))
    yield user.step
    user.abs = lambda value: 2.0
    yield user.step


@way
def a_builtin_replaced() -> Iterator[Any]:
    user = source(STEP.format("abs(0.5)"))
    yield user.step
    with put(builtins, "abs", lambda value: 2.0):
        yield user.step


@way
def a_default() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor, gain: float = 0.5) -> Any:
        h = gain * h + x
        return h, h

    yield step
    step.__defaults__ = (2.0,)
    yield step


@way
def a_keyword_default() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor, *, gain: float = 0.5) -> Any:
        h = gain * h + x
        return h, h

    yield step
    step.__kwdefaults__["gain"] = 2.0
    yield step


@way
def a_mutable_default() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor, box: list[float] = [0.5]) -> Any:  # noqa: B006
        h = box[0] * h + x
        return h, h

    yield step
    step.__defaults__[0][0] = 2.0  # type: ignore[index]
    yield step


@way
def the_code_of_the_step() -> Iterator[Any]:
    one, two = source(STEP.format("0.5")).step, source(STEP.format("2.0")).step
    yield one
    one.__code__ = two.__code__
    yield one


@way
def the_code_of_a_helper() -> Iterator[Any]:
    def get() -> float:
        return 0.5

    step = reading(get)
    yield step
    get.__code__ = (lambda: 2.0).__code__
    yield step


@way
def the_default_of_a_helper() -> Iterator[Any]:
    def get(gain: float = 0.5) -> float:
        return gain

    step = reading(get)
    yield step
    get.__defaults__ = (2.0,)
    yield step


@way
def an_attribute_of_a_helper() -> Iterator[Any]:
    def get() -> Any:
        return get.gain  # type: ignore[attr-defined]

    get.gain = 0.5  # type: ignore[attr-defined]
    step = reading(get)
    yield step
    get.gain = 2.0  # type: ignore[attr-defined]
    yield step


@way
def a_helper_of_another_module() -> Iterator[Any]:
    other = source("gain = 0.5\ndef get():\n    return gain", "other")
    step = source("from_other = None\n" + STEP.format("get()"), get=other.get).step
    yield step
    other.gain = 2.0
    yield step


@way
def a_helper_replaced() -> Iterator[Any]:
    user = source("def get():\n    return 0.5\n" + STEP.format("get()"))
    yield user.step
    user.get = lambda: 2.0
    yield user.step


@way
def a_helper_in_nested_code() -> Iterator[Any]:
    user = source("gain = 0.5\n" + STEP.format("sum([(lambda: gain)() for _ in range(1)])"))
    yield user.step
    user.gain = 2.0
    yield user.step


@way
def a_value_of_a_module() -> Iterator[Any]:
    settings = source("gain = 0.5", "settings")
    user = source(STEP.format("settings.gain"), settings=settings)
    yield user.step
    settings.gain = 2.0
    yield user.step


@way
def a_value_of_a_submodule() -> Iterator[Any]:
    settings = source("gain = 0.5", "package.settings")
    user = source(STEP.format("package.settings.gain"), package=source("", "package", settings=settings))
    yield user.step
    settings.gain = 2.0
    yield user.step


@way
def a_module_in_a_variable() -> Iterator[Any]:
    settings = source("gain = 0.5", "settings")
    user = source("def get():\n    m = settings\n    return m.gain\n" + STEP.format("get()"), settings=settings)
    yield user.step
    settings.gain = 2.0
    yield user.step


@way
def a_module_by_getattr() -> Iterator[Any]:
    settings = source("gain = 0.5", "settings")
    user = source(STEP.format("getattr(settings, 'ga' + 'in')"), settings=settings)
    yield user.step
    settings.gain = 2.0
    yield user.step


@way
def a_module_by_its_dict() -> Iterator[Any]:
    settings = source("gain = 0.5", "settings")
    user = source(STEP.format("settings.__dict__['gain']"), settings=settings)
    yield user.step
    settings.gain = 2.0
    yield user.step


@way
def a_module_as_config() -> Iterator[Any]:
    settings = source("gain = 0.5", "settings")
    holder = types.SimpleNamespace(config=settings)
    step = reading(lambda: holder.config.gain)
    yield step
    settings.gain = 2.0
    yield step


@way
def a_module_with_getattr() -> Iterator[Any]:
    settings = source("box = [0.5]\ndef __getattr__(name):\n    return box[0]", "settings")
    user = source(STEP.format("settings.gain"), settings=settings)
    yield user.step
    settings.box[0] = 2.0
    yield user.step


@way
def a_module_of_a_class_of_its_own() -> Iterator[Any]:
    class Settings(types.ModuleType):
        box = (0.5,)

        @property
        def gain(self) -> float:
            return self.box[0]

    user = source(STEP.format("settings.gain"), settings=Settings("settings"))
    yield user.step
    Settings.box = (2.0,)
    yield user.step


@way
def a_module_imported_by_the_step() -> Iterator[Any]:
    sys.modules["settings_of_a_user"] = settings = source("gain = 0.5", "settings_of_a_user")
    try:
        user = source(
            "def get():\n    import settings_of_a_user\n    return settings_of_a_user.gain\n" + STEP.format("get()")
        )
        yield user.step
        settings.gain = 2.0
        yield user.step
    finally:
        del sys.modules["settings_of_a_user"]


@way
def a_module_in_sys_modules() -> Iterator[Any]:
    sys.modules["settings_of_a_user"] = settings = source("gain = 0.5", "settings_of_a_user")
    try:
        user = source(STEP.format("sys.modules['settings_of_a_user'].gain"), sys=sys)
        yield user.step
        settings.gain = 2.0
        yield user.step
    finally:
        del sys.modules["settings_of_a_user"]


@way
def globals_by_name() -> Iterator[Any]:
    user = source("gain = 0.5\n" + STEP.format("globals()['gain']"))
    yield user.step
    user.gain = 2.0
    yield user.step


@way
def globals_of_a_function() -> Iterator[Any]:
    other = source("gain = 0.5\ndef get(): pass", "other")
    user = source(STEP.format("get.__globals__['gain']"), get=other.get)
    yield user.step
    other.gain = 2.0
    yield user.step


@way
def evaluated_text() -> Iterator[Any]:
    user = source("gain = 0.5\n" + STEP.format("eval('gain')"))
    yield user.step
    user.gain = 2.0
    yield user.step


@way
def an_edited_source() -> Iterator[Any]:
    yield source(STEP.format("0.5")).step
    yield source(STEP.format("2.0")).step


@way
def an_edited_operation() -> Iterator[Any]:
    yield source("def step(x, h):\n    h = 0.5 * h + x\n    return h, h\n").step
    yield source("def step(x, h):\n    h = 0.5 * h - x\n    return h, h\n").step


# -- callables


@way
def arguments_of_a_partial() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor, gain: float) -> Any:
        h = gain * h + x
        return h, h

    yield functools.partial(step, gain=0.5)
    yield functools.partial(step, gain=2.0)


@way
def a_mutable_argument_of_a_partial() -> Iterator[Any]:
    def step(box: list[float], x: Tensor, h: Tensor) -> Any:
        h = box[0] * h + x
        return h, h

    box = [0.5]
    made = functools.partial(step, box)
    yield made
    box[0] = 2.0
    yield made


@way
def a_subclass_of_partial() -> Iterator[Any]:
    class Step(functools.partial):  # type: ignore[type-arg]
        gain = 0.5

        def __call__(self, x: Tensor, h: Tensor) -> Any:
            h = self.gain * h + x
            return h, h

    step = Step(print)
    yield step
    step.gain = 2.0
    yield step


class Plain:
    gain: Any = 0.5

    def step(self, x: Tensor, h: Tensor) -> Any:
        h = self.gain * h + x
        return h, h


@way
def an_attribute_of_a_bound_method() -> Iterator[Any]:
    thing = Plain()
    yield thing.step
    thing.gain = 2.0
    yield thing.step


@way
def a_class_attribute() -> Iterator[Any]:
    class Own(Plain):
        gain = 0.5

    thing = Own()
    yield thing.step
    Own.gain = 2.0
    yield thing.step


@way
def an_attribute_of_a_parent_class() -> Iterator[Any]:
    class Parent(Plain):
        gain = 0.5

    class Child(Parent):
        pass

    thing = Child()
    yield thing.step
    Parent.gain = 2.0
    yield thing.step


@way
def a_class_attribute_with_underscores() -> Iterator[Any]:
    class Own:
        __gain__ = 0.5

    step = reading(lambda: Own.__gain__)
    yield step
    Own.__gain__ = 2.0
    yield step


@way
def the_class_of_an_object() -> Iterator[Any]:
    class One(Plain):
        gain = 0.5

    class Two(Plain):
        gain = 2.0

    thing = One()
    yield thing.step
    thing.__class__ = Two  # type: ignore[assignment]
    yield thing.step


@way
def a_parent_class_exchanged() -> Iterator[Any]:
    class One(Plain):
        gain = 0.5

    class Two(Plain):
        gain = 2.0

    class Child(One):
        pass

    thing = Child()
    yield thing.step
    Child.__bases__ = (Two,)
    yield thing.step


@way
def a_static_method() -> Iterator[Any]:
    class Own:
        @staticmethod
        def get() -> float:
            return 0.5

    step = reading(lambda: Own.get())
    yield step
    Own.get = staticmethod(lambda: 2.0)  # type: ignore[method-assign]
    yield step


@way
def a_class_method() -> Iterator[Any]:
    class Own:
        gain = 0.5

        @classmethod
        def get(cls) -> float:
            return cls.gain

    step = reading(Own.get)
    yield step
    Own.gain = 2.0
    yield step


@way
def a_property() -> Iterator[Any]:
    box = [0.5]

    class Own(Plain):
        @property
        def gain(self) -> Any:  # type: ignore[override]
            return box[0]

    thing = Own()
    yield thing.step
    box[0] = 2.0
    yield thing.step


@way
def a_cached_property() -> Iterator[Any]:
    class Own(Plain):
        base = 0.5

        @functools.cached_property
        def gain(self) -> Any:  # type: ignore[override]
            return self.base

    thing = Own()
    yield thing.step
    thing.base = 2.0
    vars(thing).pop("gain", None)
    yield thing.step


@way
def a_descriptor() -> Iterator[Any]:
    class Gain:
        def __init__(self) -> None:
            self.value = 0.5

        def __get__(self, owner: Any, cls: Any) -> float:
            return self.value

    gain = Gain()

    class Own(Plain):
        pass

    Own.gain = gain
    thing = Own()
    yield thing.step
    gain.value = 2.0
    yield thing.step


@way
def a_descriptor_with_slots() -> Iterator[Any]:
    class Gain:
        __slots__ = ("value",)

        def __get__(self, owner: Any, cls: Any) -> Any:
            return self.value

    gain = Gain()
    gain.value = 0.5  # type: ignore[attr-defined]

    class Own(Plain):
        pass

    Own.gain = gain
    thing = Own()
    yield thing.step
    gain.value = 2.0  # type: ignore[attr-defined]
    yield thing.step


@way
def a_getattr_method() -> Iterator[Any]:
    box = [0.5]

    class Own:
        def __getattr__(self, name: str) -> Any:
            return box[0]

    thing = Own()
    step = reading(lambda: thing.gain)
    yield step
    box[0] = 2.0
    yield step


@way
def a_metaclass() -> Iterator[Any]:
    class Meta(type):
        value = 0.5

        @property
        def gain(cls) -> float:
            return cls.value

    class Own(metaclass=Meta):
        pass

    step = reading(lambda: Own.gain)
    yield step
    Meta.value = 2.0
    yield step


@way
def a_virtual_subclass() -> Iterator[Any]:
    class Fast(abc.ABC):
        @abc.abstractmethod
        def get(self) -> float: ...

    class Own:
        pass

    thing = Own()
    step = reading(lambda: 2.0 if isinstance(thing, Fast) else 0.5)
    yield step
    Fast.register(Own)
    yield step


@way
def a_callable_object() -> Iterator[Any]:
    class Step:
        gain = 0.5

        def __call__(self, x: Tensor, h: Tensor) -> Any:
            h = self.gain * h + x
            return h, h

    step = Step()
    yield step
    step.gain = 2.0
    yield step


@way
def a_wrapper_that_calls_itself_a_function_of_torch() -> Iterator[Any]:
    gain = 0.5

    @functools.wraps(F.relu)
    def scaled(h: Tensor) -> Tensor:
        return gain * h

    def step(x: Tensor, h: Tensor) -> Any:
        h = scaled(h) + x
        return h, h

    yield step
    gain = 2.0
    yield step


@way
def a_class_that_calls_itself_a_class_of_torch() -> Iterator[Any]:
    class Linear(Plain):
        gain = 0.5

    Linear.__module__ = "torch.nn.modules.linear"
    Linear.__qualname__ = "Linear"
    thing = Linear()
    yield thing.step
    Linear.gain = 2.0
    yield thing.step


@way
def a_decorator_of_torch() -> Iterator[Any]:
    gain = 0.5

    @torch.no_grad()
    def get() -> float:
        return gain

    step = reading(get)
    yield step
    gain = 2.0
    yield step


@way
def a_memoised_function() -> Iterator[Any]:
    gain = 0.5

    @functools.lru_cache
    def get() -> float:
        return gain

    step = reading(get)
    yield step
    gain = 2.0
    yield step
    get.cache_clear()
    yield step


@way
def a_single_dispatch_function() -> Iterator[Any]:
    @functools.singledispatch
    def get(value: Any) -> float:
        return 0.5

    step = reading(lambda: get(1))
    yield step
    get.register(int, lambda value: 2.0)
    yield step


@way
def a_builtin_method_of_a_list() -> Iterator[Any]:
    box = [0.5]
    get = box.__getitem__
    step = reading(lambda: get(0))
    yield step
    box[0] = 2.0
    yield step


@way
def an_operator_getter() -> Iterator[Any]:
    box = types.SimpleNamespace(gain=0.5)
    get = operator.attrgetter("gain")
    step = reading(lambda: get(box))
    yield step
    box.gain = 2.0
    yield step


# -- values


def boxed(box: Any, change: Callable[[], None], get: Callable[[Any], Any]) -> Iterator[Any]:
    step = reading(lambda: get(box))
    yield step
    change()
    yield step


def first(box: Any) -> Any:
    return box[0]


def by_name(box: Any) -> Any:
    return box["gain"]


def attribute(box: Any) -> Any:
    return box.gain


def setter(box: Any, name: str = "gain", value: Any = 2.0) -> Callable[[], None]:
    return lambda: setattr(box, name, value)


def item_setter(box: Any, key: Any = 0, value: Any = 2.0) -> Callable[[], None]:
    return lambda: box.__setitem__(key, value)


@way
def a_list() -> Iterator[Any]:
    box = [0.5]
    yield from boxed(box, item_setter(box), first)


@way
def a_dict() -> Iterator[Any]:
    box = {"gain": 0.5}
    yield from boxed(box, item_setter(box, "gain"), by_name)


@way
def the_order_of_a_dict() -> Iterator[Any]:
    box = {"a": 0.5, "b": 2.0}
    yield from boxed(box, lambda: box.update({"a": box.pop("a")}), lambda box: next(iter(box.values())))


@way
def a_dict_in_a_dict() -> Iterator[Any]:
    box = {"a": {"b": {"c": 0.5}}}
    yield from boxed(box, item_setter(box["a"]["b"], "c"), lambda box: box["a"]["b"]["c"])


@way
def a_key_of_a_dict() -> Iterator[Any]:
    box = {0.5: None}
    yield from boxed(box, lambda: (box.clear(), box.update({2.0: None})), lambda box: next(iter(box)))  # type: ignore[arg-type,return-value]


@way
def a_set() -> Iterator[Any]:
    box = {0.5}
    yield from boxed(box, lambda: (box.clear(), box.add(2.0)), lambda box: next(iter(box)))  # type: ignore[arg-type,return-value,func-returns-value]


@way
def the_order_of_a_set() -> Iterator[Any]:
    yield reading(functools.partial(ordered, {0, 8}))
    yield reading(functools.partial(ordered, {8, 0}))


def ordered(numbers: set[int]) -> float:
    return 0.5 if next(iter(numbers)) == 0 else 2.0


@way
def a_set_of_objects() -> Iterator[Any]:
    box = types.SimpleNamespace(gain=0.5)
    key = Key(box)
    yield from boxed({key}, setter(box), lambda keys: next(iter(keys)).box.gain)


class Key:
    def __init__(self, box: Any) -> None:
        self.box = box

    def __repr__(self) -> str:
        return "Key"


@way
def a_tuple_that_holds_a_list() -> Iterator[Any]:
    box = ([0.5],)
    yield from boxed(box, item_setter(box[0]), lambda box: box[0][0])


@way
def a_deque() -> Iterator[Any]:
    box = collections.deque([0.5])
    yield from boxed(box, item_setter(box), first)


@way
def the_length_limit_of_a_deque() -> Iterator[Any]:
    yield reading(functools.partial(longest, collections.deque([0.5], maxlen=1)))
    yield reading(functools.partial(longest, collections.deque([0.5], maxlen=2)))


def longest(box: Any) -> Any:
    return 0.5 if box.maxlen == 1 else 2.0


@way
def an_ordered_dict() -> Iterator[Any]:
    box = collections.OrderedDict(gain=0.5)
    yield from boxed(box, item_setter(box, "gain"), by_name)


@way
def a_default_dict() -> Iterator[Any]:
    box: Any = collections.defaultdict(lambda: 0.5)
    yield from boxed(box, setter(box, "default_factory", lambda: 2.0), lambda box: (box["gain"], box.clear())[0])


@way
def a_counter() -> Iterator[Any]:
    box = collections.Counter(gain=1)
    yield from boxed(box, lambda: box.update(["gain"]), lambda box: box["gain"] / 2)


@way
def a_chain_map() -> Iterator[Any]:
    values = {"gain": 0.5}
    yield from boxed(collections.ChainMap({}, values), item_setter(values, "gain"), by_name)


@way
def a_read_only_view_of_a_dict() -> Iterator[Any]:
    values = {"gain": 0.5}
    yield from boxed(types.MappingProxyType(values), item_setter(values, "gain"), by_name)


@way
def a_view_of_the_values_of_a_dict() -> Iterator[Any]:
    values = {"gain": 0.5}
    yield from boxed(values.values(), item_setter(values, "gain"), lambda values: next(iter(values)))


@way
def a_large_list() -> Iterator[Any]:
    box = [0.5] * 5000
    yield from boxed(box, item_setter(box, 4321), lambda box: box[4321])


@way
def a_large_dict() -> Iterator[Any]:
    box = dict.fromkeys(range(5000), 0.5)
    yield from boxed(box, item_setter(box, 4321), lambda box: box[4321])


@way
def a_large_set() -> Iterator[Any]:
    box = set(range(5000))
    yield from boxed(box, lambda: (box.remove(17), box.add(-1)), lambda box: 0.5 if 17 in box else 2.0)  # type: ignore[arg-type,return-value,func-returns-value]


@way
def a_deeply_nested_list() -> Iterator[Any]:
    innermost = [0.5]
    box: Any = innermost
    for _ in range(60):
        box = [box]
    yield from boxed(box, item_setter(innermost), deepest)


def deepest(box: Any) -> Any:
    while isinstance(box, list):
        box = box[0]
    return box


@way
def a_list_that_holds_itself() -> Iterator[Any]:
    box: list[Any] = [0.5]
    box.append(box)
    yield from boxed(box, item_setter(box), lambda box: box[1][1][0])


@way
def two_lists_become_one() -> Iterator[Any]:
    one, two = [1.0], [1.0]
    box = [one, two]
    yield from boxed(box, item_setter(box, 1, one), lambda box: 2.0 if box[0] is box[1] else 0.5)


@way
def a_named_tuple() -> Iterator[Any]:
    class Settings(NamedTuple):
        gain: float

    yield reading(functools.partial(attribute, Settings(0.5)))
    yield reading(functools.partial(attribute, Settings(2.0)))


@way
def a_method_of_a_named_tuple() -> Iterator[Any]:
    class Settings(NamedTuple):
        box: float

        @property
        def gain(self) -> float:
            return 0.5

    settings = Settings(1.0)
    yield from boxed(settings, setter(Settings, "gain", property(lambda self: 2.0)), attribute)


@way
def a_dataclass() -> Iterator[Any]:
    @dataclasses.dataclass
    class Settings:
        gain: float = 0.5

    box = Settings()
    yield from boxed(box, setter(box), attribute)


@way
def a_frozen_dataclass_with_slots() -> Iterator[Any]:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Settings:
        gain: float = 0.5

    box = Settings()
    yield from boxed(box, lambda: object.__setattr__(box, "gain", 2.0), attribute)


@way
def a_dataclass_as_a_dict() -> Iterator[Any]:
    @dataclasses.dataclass
    class Settings:
        gain: float = 0.5

    box = Settings()
    yield from boxed(box, setter(box), lambda box: dataclasses.asdict(box)["gain"])


@way
def slots() -> Iterator[Any]:
    class Settings:
        __slots__ = ("gain",)

    box: Any = Settings()
    box.gain = 0.5
    yield from boxed(box, setter(box), attribute)


@way
def slots_of_a_parent_class() -> Iterator[Any]:
    class Parent:
        __slots__ = ("gain",)

    class Child(Parent):
        pass

    box: Any = Child()
    box.gain = 0.5
    yield from boxed(box, setter(box), attribute)


@way
def a_private_slot() -> Iterator[Any]:
    class Settings:
        __slots__ = ("__gain",)

        def __init__(self) -> None:
            self.put(0.5)

        def put(self, gain: float) -> None:
            self.__gain = gain

        @property
        def gain(self) -> float:
            return self.__gain

    box = Settings()
    yield from boxed(box, lambda: box.put(2.0), attribute)


@way
def a_name_space() -> Iterator[Any]:
    box = types.SimpleNamespace(gain=0.5)
    yield from boxed(box, setter(box), attribute)


@way
def an_attribute_of_an_enum_member() -> Iterator[Any]:
    class Mode(enum.Enum):
        FAST = 1

    Mode.FAST.gain = 0.5  # type: ignore[attr-defined]
    yield from boxed(Mode.FAST, setter(Mode.FAST), attribute)


@way
def a_mutable_value_of_an_enum_member() -> Iterator[Any]:
    class Mode(enum.Enum):
        FAST = [0.5]

    yield from boxed(Mode.FAST, item_setter(Mode.FAST.value), lambda box: box.value[0])


@way
def a_method_of_an_enum() -> Iterator[Any]:
    class Mode(enum.Enum):
        FAST = 1

        def scale(self) -> float:
            return 0.5

    yield from boxed(Mode.FAST, setter(Mode, "scale", lambda self: 2.0), lambda box: box.scale())


@way
def another_enum_member() -> Iterator[Any]:
    class Mode(enum.Enum):
        SLOW = 0.5
        FAST = 2.0

    box = types.SimpleNamespace(mode=Mode.SLOW)
    yield from boxed(box, setter(box, "mode", Mode.FAST), lambda box: box.mode.value)


@way
def an_int_enum() -> Iterator[Any]:
    class Mode(enum.IntEnum):
        FAST = 1

    Mode.FAST.gain = 0.5  # type: ignore[attr-defined]
    yield from boxed(Mode.FAST, setter(Mode.FAST), attribute)


def subclass_of(base: type, value: Any) -> Any:
    made = type("Own", (base,), {})(value)
    made.gain = 0.5
    return made


@way
def an_attribute_of_an_int() -> Iterator[Any]:
    box = subclass_of(int, 1)
    yield from boxed(box, setter(box), attribute)


@way
def an_attribute_of_a_float() -> Iterator[Any]:
    box = subclass_of(float, 1.0)
    yield from boxed(box, setter(box), attribute)


@way
def an_attribute_of_a_string() -> Iterator[Any]:
    box = subclass_of(str, "a")
    yield from boxed(box, setter(box), attribute)


@way
def an_attribute_of_a_list() -> Iterator[Any]:
    box = subclass_of(list, [1.0])
    yield from boxed(box, setter(box), attribute)


@way
def an_attribute_of_a_dict() -> Iterator[Any]:
    box = subclass_of(dict, {"a": 1.0})
    yield from boxed(box, setter(box), attribute)


@way
def an_attribute_of_a_tuple() -> Iterator[Any]:
    box = subclass_of(tuple, (1.0,))
    yield from boxed(box, setter(box), attribute)


@way
def a_method_of_an_int() -> Iterator[Any]:
    class Own(int):
        def scale(self) -> float:
            return 0.5

    yield from boxed(Own(1), setter(Own, "scale", lambda self: 2.0), lambda box: box.scale())


@way
def an_operator_of_a_float() -> Iterator[Any]:
    class Own(float):
        def __mul__(self, other: Any) -> Any:
            return 0.5 * other

    yield from boxed(Own(1.0), setter(Own, "__mul__", lambda self, other: 2.0 * other), lambda box: box)


@way
def the_content_of_a_list_that_hides_it() -> Iterator[Any]:
    class Own(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return iter(())

        def __len__(self) -> int:
            return 0

    box = Own([0.5])
    yield from boxed(box, lambda: list.__setitem__(box, 0, 2.0), lambda box: list.__getitem__(box, 0))


@way
def a_bytearray() -> Iterator[Any]:
    box = bytearray([1])
    yield from boxed(box, item_setter(box, 0, 4), lambda box: box[0] / 2)


@way
def a_fraction() -> Iterator[Any]:
    box = types.SimpleNamespace(gain=fractions.Fraction(1, 2))
    yield from boxed(box, setter(box, value=fractions.Fraction(2, 1)), lambda box: float(box.gain))


@way
def a_decimal() -> Iterator[Any]:
    box = types.SimpleNamespace(gain=decimal.Decimal("0.5"))
    yield from boxed(box, setter(box, value=decimal.Decimal("2.0")), lambda box: float(box.gain))


@way
def minus_zero() -> Iterator[Any]:
    box = types.SimpleNamespace(zero=0.0)
    yield from boxed(box, setter(box, "zero", -0.0), lambda box: 2.0 if math.copysign(1, box.zero) < 0 else 0.5)


@way
def true_for_one() -> Iterator[Any]:
    box = types.SimpleNamespace(one=1)
    yield from boxed(box, setter(box, "one", True), lambda box: 2.0 if box.one is True else 0.5)


@way
def a_complex_number() -> Iterator[Any]:
    box = types.SimpleNamespace(z=0.5 + 0.0j)
    yield from boxed(box, setter(box, "z", 2.0 + 0.0j), lambda box: box.z.real)


@way
def a_numpy_array() -> Iterator[Any]:
    box = np.array([0.5])
    yield from boxed(box, item_setter(box), lambda box: float(box[0]))


@way
def a_large_numpy_array() -> Iterator[Any]:
    box = np.full(300_000, 0.5)
    yield from boxed(box, item_setter(box, 123_456), lambda box: float(box[123_456]))


@way
def a_numpy_array_of_objects() -> Iterator[Any]:
    inner = [0.5]
    box = np.empty(1, dtype=object)
    box[0] = inner
    yield from boxed(box, item_setter(inner), lambda box: box[0][0])


@way
def a_subclass_of_a_numpy_array() -> Iterator[Any]:
    class Own(np.ndarray):
        gain = 0.5

    box = np.ones(1).view(Own)
    yield from boxed(box, setter(box), attribute)


@way
def a_numpy_number() -> Iterator[Any]:
    box = types.SimpleNamespace(gain=np.float64(0.5))
    yield from boxed(box, setter(box, value=np.float64(2.0)), lambda box: float(box.gain))


@way
def a_weak_reference() -> Iterator[Any]:
    thing = Plain()
    yield from boxed(weakref.ref(thing), setter(thing), lambda box: box().gain)


@way
def a_weak_dict() -> Iterator[Any]:
    thing = Plain()
    box: Any = weakref.WeakValueDictionary({"thing": thing})
    yield from boxed(box, setter(thing), lambda box: box["thing"].gain)


@way
def a_proxy() -> Iterator[Any]:
    thing = Plain()
    yield from boxed(weakref.proxy(thing), setter(thing), attribute)


@way
def an_iterator() -> Iterator[Any]:
    box = iter([0.5] * 3 + [2.0] * 9)
    yield from boxed(box, lambda: None, next)


@way
def a_generator() -> Iterator[Any]:
    yield from boxed((gain for gain in [0.5] * 3 + [2.0] * 9), lambda: None, next)


@way
def a_cycle() -> Iterator[Any]:
    yield from boxed(itertools.count(), lambda: None, lambda box: 0.1 * next(box))


@way
def a_context_variable() -> Iterator[Any]:
    box: Any = contextvars.ContextVar("gain", default=0.5)
    yield from boxed(box, lambda: box.set(2.0), lambda box: box.get())


@way
def a_thread_local() -> Iterator[Any]:
    box: Any = threading.local()
    box.gain = 0.5
    yield from boxed(box, setter(box), attribute)


@way
def an_object_of_the_random_module() -> Iterator[Any]:
    box = random.Random(3)
    yield from boxed(box, lambda: None, lambda box: box.random())


@way
def a_random_number() -> Iterator[Any]:
    random.seed(3)
    yield from boxed(random, lambda: None, lambda box: box.random())


@way
def a_random_number_of_numpy() -> Iterator[Any]:
    np.random.seed(3)
    step = reading(lambda: float(np.random.rand()))
    yield step
    yield step


# -- the process


@way
def an_environment_variable() -> Iterator[Any]:
    step = reading(lambda: float(os.environ["GAIN_OF_A_USER"]))
    try:
        os.environ["GAIN_OF_A_USER"] = "0.5"
        yield step
        os.environ["GAIN_OF_A_USER"] = "2.0"
        yield step
    finally:
        del os.environ["GAIN_OF_A_USER"]


@way
def an_environment_variable_by_getenv() -> Iterator[Any]:
    step = reading(lambda: float(os.getenv("GAIN_OF_A_USER", "0.5")))
    yield step
    try:
        os.environ["GAIN_OF_A_USER"] = "2.0"
        yield step
    finally:
        del os.environ["GAIN_OF_A_USER"]


@way
def an_argument_of_the_process() -> Iterator[Any]:
    step = reading(lambda: 2.0 if sys.argv[-1] == "fast" else 0.5)
    yield step
    with put(sys, "argv", [*sys.argv, "fast"]):
        yield step


@way
def a_working_folder() -> Iterator[Any]:
    step = reading(lambda: 2.0 if os.getcwd() == "/" else 0.5)
    before = os.getcwd()
    yield step
    os.chdir("/")
    try:
        yield step
    finally:
        os.chdir(before)


@way
def a_recursion_limit() -> Iterator[Any]:
    before = sys.getrecursionlimit()
    step = reading(lambda: 0.5 if sys.getrecursionlimit() == before else 2.0)
    yield step
    sys.setrecursionlimit(before + 100)
    try:
        yield step
    finally:
        sys.setrecursionlimit(before)


@way
def a_function_of_math_replaced() -> Iterator[Any]:
    step = reading(lambda: math.exp(0.0) / 2)
    yield step
    with put(math, "exp", lambda value: 4.0):
        yield step


@way
def a_constant_of_math_replaced() -> Iterator[Any]:
    step = reading(lambda: math.pi / 6)
    yield step
    with put(math, "pi", 12.0):
        yield step


@way
def a_function_of_math_through_getattr() -> Iterator[Any]:
    step = reading(lambda: getattr(math, "e" + "xp")(0.0) / 2)
    yield step
    with put(math, "exp", lambda value: 4.0):
        yield step


def activation(x: Tensor, h: Tensor) -> Any:
    h = torch.tanh(h) + x
    return h, h


def f_activation(x: Tensor, h: Tensor) -> Any:
    h = F.softmax(h, -1) + x
    return h, h


@way
def a_function_of_torch_replaced() -> Iterator[Any]:
    yield activation
    with put(torch, "tanh", lambda value: 2.0 * value):
        yield activation


@way
def a_function_of_torch_replaced_by_another() -> Iterator[Any]:
    yield activation
    with put(torch, "tanh", torch.cos):
        yield activation


@way
def what_a_replaced_function_of_torch_reads() -> Iterator[Any]:
    gain = 0.5
    with put(torch, "tanh", lambda value: gain * value):
        yield activation
        gain = 2.0
        yield activation


@way
def a_function_of_nn_functional_replaced() -> Iterator[Any]:
    yield f_activation
    with put(F, "softmax", lambda value, dim: 2.0 * value):
        yield f_activation


@way
def the_code_of_a_function_of_torch() -> Iterator[Any]:
    yield f_activation
    before = F.softmax.__code__
    F.softmax.__code__ = (lambda input, dim=None, _stacklevel=3, dtype=None: 2.0 * input).__code__
    try:
        yield f_activation
    finally:
        F.softmax.__code__ = before


def method(x: Tensor, h: Tensor) -> Any:
    h = h.tanh() + x
    return h, h


@way
def a_method_of_tensors_replaced() -> Iterator[Any]:
    yield method
    with put(torch.Tensor, "tanh", lambda self: 2.0 * self):
        yield method


@way
def an_operator_of_tensors_replaced() -> Iterator[Any]:
    step = reading(lambda: 0.5)
    yield step
    with put(torch.Tensor, "__rmul__", lambda self, other: torch.mul(self, 2.0)):
        yield step


class Linear(nn.Module):
    """A cell of torch's own parts; the same numbers each time."""

    def __init__(self, part: Callable[[], nn.Module] = lambda: nn.Linear(3, 3)) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.part = part()

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = self.part(h) + x
        return h, h


@way
def the_forward_of_a_class_of_torch() -> Iterator[Any]:
    cell = Linear()
    yield cell
    with put(nn.Linear, "forward", lambda self, h: 2.0 * h):
        yield cell


@way
def the_code_of_the_forward_of_a_class_of_torch() -> Iterator[Any]:
    cell = Linear()
    yield cell
    before = nn.Linear.forward.__code__
    nn.Linear.forward.__code__ = (lambda self, input: 2.0 * input).__code__
    try:
        yield cell
    finally:
        nn.Linear.forward.__code__ = before


@way
def the_forward_of_another_class_of_torch() -> Iterator[Any]:
    cell = Linear()
    yield cell
    with put(nn.Linear, "forward", nn.Identity.forward):
        yield cell


@way
def a_function_that_a_layer_of_torch_calls() -> Iterator[Any]:
    cell = Linear()
    yield cell
    with put(F, "linear", lambda h, weight, bias: 2.0 * h):
        yield cell


@way
def a_function_that_a_function_of_a_layer_calls() -> Iterator[Any]:
    cell = Linear(lambda: nn.LayerNorm(3))
    yield cell
    with put(torch, "layer_norm", lambda h, *rest: 2.0 * h):
        yield cell


@way
def a_function_that_a_cell_of_gradsmith_calls() -> Iterator[Any]:
    from gradsmith.recurrent import TanhRNNCell

    torch.manual_seed(4)
    cell = TanhRNNCell(3, 3)
    yield cell
    with put(torch, "tanh", lambda value: 2.0 * value):
        yield cell


@contextlib.contextmanager
def added(owner: Any, name: str, value: Any) -> Iterator[None]:
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)


class WithOwnGain(Linear):
    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = self.part.gain * h + x  # type: ignore[operator]
        return h, h


@way
def a_number_put_on_a_class_of_torch() -> Iterator[Any]:
    cell = WithOwnGain()
    with added(nn.Linear, "gain", 0.5):
        yield cell
        nn.Linear.gain = 2.0  # type: ignore[attr-defined]
        yield cell


@way
def a_property_put_on_a_class_of_torch() -> Iterator[Any]:
    box = [0.5]
    cell = WithOwnGain()
    with added(nn.Linear, "gain", property(lambda self: box[0])):
        yield cell
        box[0] = 2.0
        yield cell


@way
def a_list_put_on_every_module() -> Iterator[Any]:
    class Cell(Linear):
        def forward(self, x: Tensor, h: Tensor) -> Any:
            h = self.box[0] * h + x  # type: ignore[operator,index]
            return h, h

    box = [0.5]
    cell = Cell()
    with added(nn.Module, "box", box):
        yield cell
        box[0] = 2.0
        yield cell


@way
def a_number_put_on_every_tensor() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor) -> Any:
        h = h.gain * h + x  # type: ignore[attr-defined]
        return h, h

    with added(torch.Tensor, "gain", 0.5):
        yield step
        torch.Tensor.gain = 2.0  # type: ignore[attr-defined]
        yield step


@way
def an_object_in_place_of_a_function_of_torch() -> Iterator[Any]:
    class Scale:
        gain = 0.5

        def __call__(self, h: Tensor, dim: int) -> Tensor:
            return self.gain * h

    scale = Scale()
    with put(F, "softmax", scale):
        yield f_activation
        scale.gain = 2.0
        yield f_activation


@way
def an_object_in_place_of_a_function_that_a_layer_calls() -> Iterator[Any]:
    class Scale:
        gain = 0.5

        def __call__(self, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            return self.gain * h

    scale, cell = Scale(), Linear()
    with put(F, "linear", scale):
        yield cell
        scale.gain = 2.0
        yield cell


@way
def a_module_that_a_layer_of_torch_reads() -> Iterator[Any]:
    cell = Linear()
    yield cell
    with put(nn.modules.linear, "F", types.SimpleNamespace(linear=lambda h, weight, bias: 2.0 * h)):
        yield cell


@way
def a_function_by_its_name() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor) -> Any:
        h = getattr(F, name)(h) + x
        return h, h

    name = "tanh"
    yield step
    with put(F, "tanh", lambda h: 2.0 * h):
        yield step


@way
def a_function_of_torch_kept_by_a_module() -> Iterator[Any]:
    cell: Any = Linear()
    cell.part = torch.nn.Identity()
    cell.part.forward = torch.tanh
    yield cell
    cell.part.forward = torch.cos
    yield cell


@way
def a_helper_in_a_dict() -> Iterator[Any]:
    table: Any = {"get": lambda: 0.5}
    yield from boxed(table, item_setter(table, "get", lambda: 2.0), lambda table: table["get"]())


@way
def the_name_of_a_function() -> Iterator[Any]:
    def helper() -> None: ...

    step = reading(lambda: 0.5 if helper.__name__ == "helper" else 2.0)
    yield step
    helper.__name__ = "other"
    yield step


@way
def the_documentation_of_a_class() -> Iterator[Any]:
    class Own:
        """0.5"""

    step = reading(lambda: float(Own.__doc__ or 1))
    yield step
    Own.__doc__ = "2.0"
    yield step


@way
def the_name_of_a_class() -> Iterator[Any]:
    class Own:
        pass

    step = reading(lambda: 0.5 if Own.__qualname__.endswith("Own") else 2.0)
    yield step
    Own.__qualname__ = "Other"
    yield step


@way
def the_module_of_a_function() -> Iterator[Any]:
    def helper() -> None: ...

    step = reading(lambda: 2.0 if helper.__module__ == "other" else 0.5)
    yield step
    helper.__module__ = "other"
    yield step


@way
def the_call_of_every_module() -> Iterator[Any]:
    cell = Linear()
    yield cell
    before = nn.Module.__call__
    with put(nn.Module, "__call__", lambda self, *given: before(self, *given) if self is cell else 2.0 * given[0]):
        yield cell


@way
def a_hook_on_every_module() -> Iterator[Any]:
    cell = Linear()
    yield cell
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, given, out: 2.0 * out if isinstance(module, nn.Linear) else None
    )
    try:
        yield cell
    finally:
        handle.remove()


@way
def a_backward_hook_on_every_module() -> Iterator[Any]:
    cell = Linear()
    yield cell
    handle = nn.modules.module.register_module_full_backward_hook(
        lambda module, given, out: (2.0 * given[0],) if isinstance(module, nn.Linear) else None
    )
    try:
        yield cell
    finally:
        handle.remove()


@way
def a_torch_function_mode() -> Iterator[Any]:
    class Double(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return 2.0 * result if func is torch.tanh else result

    yield activation
    with Double():
        yield activation


# -- settings of torch


@way
def the_default_dtype() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor) -> Any:
        h = h * (0.5 if torch.get_default_dtype() is torch.float32 else 2.0) + x
        return h, h

    yield step
    torch.set_default_dtype(torch.float64)
    try:
        yield step
    finally:
        torch.set_default_dtype(torch.float32)


@way
def deterministic_algorithms() -> Iterator[Any]:
    step = reading(lambda: 2.0 if torch.are_deterministic_algorithms_enabled() else 0.5)
    yield step
    torch.use_deterministic_algorithms(True)
    try:
        yield step
    finally:
        torch.use_deterministic_algorithms(False)


@way
def gradients_switched_off() -> Iterator[Any]:
    step = reading(lambda: 0.5 if torch.is_grad_enabled() else 2.0)
    yield step
    with torch.no_grad():
        yield step


@way
def inference_mode() -> Iterator[Any]:
    step = reading(lambda: 2.0 if torch.is_inference_mode_enabled() else 0.5)
    yield step
    with torch.inference_mode():
        yield step


@way
def autocast() -> Iterator[Any]:
    step = reading(lambda: 2.0 if torch.is_autocast_enabled("cpu") else 0.5)
    yield step
    with torch.autocast("cpu", torch.bfloat16):
        yield step


@way
def the_number_of_threads() -> Iterator[Any]:
    before = torch.get_num_threads()
    step = reading(lambda: 0.5 if torch.get_num_threads() == before else 2.0)
    yield step
    torch.set_num_threads(before + 1)
    try:
        yield step
    finally:
        torch.set_num_threads(before)


@way
def the_seed() -> Iterator[Any]:
    step = reading(lambda: 0.5 if torch.initial_seed() == 1 else 2.0)
    torch.manual_seed(1)
    yield step
    torch.manual_seed(2)
    yield step


@way
def a_flag_of_a_torch_backend() -> Iterator[Any]:
    before = torch.backends.cudnn.benchmark
    step = reading(lambda: 0.5 if torch.backends.cudnn.benchmark == before else 2.0)
    yield step
    # torch.testing._internal, which other tests import, forbids the plain assignment for the rest of the process.
    with torch.backends.__allow_nonbracketed_mutation():
        torch.backends.cudnn.benchmark = not before
    try:
        yield step
    finally:
        with torch.backends.__allow_nonbracketed_mutation():
            torch.backends.cudnn.benchmark = before


@way
def a_generator_of_torch() -> Iterator[Any]:
    box = torch.Generator().manual_seed(1)
    yield from boxed(box, lambda: box.manual_seed(2), lambda box: 0.1 * (box.initial_seed() + 1))


# -- modules


class Scaled(nn.Module):
    gain: Any

    def __init__(self) -> None:
        super().__init__()
        self.gain = 0.5

    def forward(self, x: Tensor, h: Tensor) -> Any:
        h = self.gain * h + x
        return h, h


@way
def an_attribute_of_a_module() -> Iterator[Any]:
    cell = Scaled()
    yield cell
    cell.gain = 2.0
    yield cell


@way
def training() -> Iterator[Any]:
    class Cell(Scaled):
        def forward(self, x: Tensor, h: Tensor) -> Any:
            h = (0.5 if self.training else 2.0) * h + x
            return h, h

    cell = Cell()
    yield cell
    yield cell.eval()


@way
def a_dropout_switched_off() -> Iterator[Any]:
    class Cell(Scaled):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(1.0)

        def forward(self, x: Tensor, h: Tensor) -> Any:
            h = self.drop(h) + x
            return h, h

    cell = Cell()
    yield cell
    cell.drop.p = 0.0
    yield cell


@way
def the_forward_of_one_module() -> Iterator[Any]:
    cell = Scaled()
    yield cell
    cell.forward = lambda x, h: (2.0 * h + x,) * 2  # type: ignore[method-assign]
    yield cell


@way
def the_forward_of_a_part() -> Iterator[Any]:
    cell = Linear()
    yield cell
    cell.part.forward = lambda h: 2.0 * h  # type: ignore[method-assign]
    yield cell


@way
def the_forward_of_the_class_of_a_module() -> Iterator[Any]:
    class Cell(Scaled):
        pass

    cell = Cell()
    yield cell
    Cell.forward = lambda self, x, h: (2.0 * h + x,) * 2  # type: ignore[method-assign]
    yield cell


@way
def a_hook_on_a_part() -> Iterator[Any]:
    cell = Linear()
    yield cell
    cell.part.register_forward_hook(lambda module, given, out: 2.0 * out)
    yield cell


@way
def what_a_hook_reads() -> Iterator[Any]:
    gain = 0.5
    cell = Linear()
    cell.part.register_forward_hook(lambda module, given, out: gain * out)
    yield cell
    gain = 2.0
    yield cell


@way
def a_part_exchanged() -> Iterator[Any]:
    cell = Linear(nn.Tanh)
    yield cell
    cell.part = nn.Sigmoid()
    yield cell


@way
def a_bias_removed() -> Iterator[Any]:
    cell: Any = Linear()
    yield cell
    cell.part.bias = None
    yield cell


@way
def a_parameter_changed_in_place() -> Iterator[Any]:
    cell: Any = Linear()
    yield cell
    with torch.no_grad():
        cell.part.weight.mul_(2.0)
    yield cell


@way
def a_parameter_changed_through_data() -> Iterator[Any]:
    cell: Any = Linear()
    yield cell
    cell.part.weight.data = 2.0 * cell.part.weight.data
    yield cell


@way
def a_parameter_of_another_dtype() -> Iterator[Any]:
    w = torch.full((3,), 0.5)
    box = types.SimpleNamespace(w=w)
    yield from boxed(box, setter(box, "w", 2 * w.double()), lambda box: box.w.to(torch.float32))


@way
def a_parameter_that_broadcasts() -> Iterator[Any]:
    box = types.SimpleNamespace(w=torch.full((3,), 0.5))
    yield from boxed(box, setter(box, "w", torch.full((2, 1), 2.0)), lambda box: box.w)


@way
def a_parameter_frozen() -> Iterator[Any]:
    cell: Any = Linear()
    step = reading(lambda: 0.5 if cell.part.weight.requires_grad else 2.0)
    yield step
    cell.part.weight.requires_grad_(False)
    yield step


@way
def a_gradient_that_appears() -> Iterator[Any]:
    w = torch.ones(3, requires_grad=True)
    step = reading(lambda: 0.5 * w if w.grad is None else 2.0 * w)
    yield step
    w.grad = torch.ones(3)
    yield step


@way
def the_layout_of_a_tensor() -> Iterator[Any]:
    box = types.SimpleNamespace(w=torch.ones(3, 3))
    step = reading(lambda: 0.5 if box.w.is_contiguous() else 2.0)
    yield step
    box.w = torch.ones(3, 6)[:, ::2]
    yield step


@way
def the_version_of_a_tensor() -> Iterator[Any]:
    w = torch.ones(3)
    step = reading(lambda: 0.5 if w._version == 0 else 2.0)
    yield step
    w.add_(0)
    yield step


@way
def an_attribute_of_a_parameter() -> Iterator[Any]:
    w: Any = torch.ones(3)
    w.gain = 0.5
    yield from boxed(w, setter(w), lambda w: w.gain * w)


@way
def a_number_read_from_a_tensor() -> Iterator[Any]:
    w = torch.tensor(0.5)
    yield from boxed(w, lambda: w.fill_(2.0), float)


@way
def a_tensor_in_a_numpy_array() -> Iterator[Any]:
    w = torch.tensor([0.5])
    yield from boxed(w.numpy(), lambda: w.fill_(2.0), lambda box: float(box[0]))


@way
def a_buffer() -> Iterator[Any]:
    cell: Any = Scaled()
    del cell.gain
    cell.register_buffer("gain", torch.tensor(0.5))
    yield cell
    cell.gain.fill_(2.0)
    yield cell


@way
def a_parametrization() -> Iterator[Any]:
    class Double(nn.Module):
        def forward(self, w: Tensor) -> Tensor:
            return 2.0 * w

    cell: Any = Linear()
    yield cell
    torch.nn.utils.parametrize.register_parametrization(cell.part, "weight", Double())
    yield cell


@way
def what_a_parametrization_reads() -> Iterator[Any]:
    class Scale(nn.Module):
        gain = 0.5

        def forward(self, w: Tensor) -> Tensor:
            return self.gain * w

    cell: Any = Linear()
    scale = Scale()
    torch.nn.utils.parametrize.register_parametrization(cell.part, "weight", scale)
    yield cell
    scale.gain = 2.0
    yield cell


@way
def a_value_that_a_module_computes_once() -> Iterator[Any]:
    class Cell(Scaled):
        def __init__(self) -> None:
            super().__init__()
            self.base, self.kept = 0.5, None

        def forward(self, x: Tensor, h: Tensor) -> Any:
            if self.kept is None:
                self.kept = torch.full((3,), self.base)
            h = self.kept * h + x
            return h, h

    cell = Cell()
    yield cell
    yield cell
    cell.base, cell.kept = 2.0, None
    yield cell
    yield cell


@way
def a_module_that_counts() -> Iterator[Any]:
    class Cell(Scaled):
        def forward(self, x: Tensor, h: Tensor) -> Any:
            self.gain += 0.25
            h = self.gain * h + x
            return h, h

    cell = Cell()
    yield cell
    yield cell


@way
def a_list_that_grows() -> Iterator[Any]:
    kept: list[int] = []
    step = reading(lambda: (kept.append(1), 0.25 * len(kept))[1])  # type: ignore[func-returns-value]
    yield step
    yield step


@way
def a_global_that_counts() -> Iterator[Any]:
    user = source("gain = 0.5\ndef get():\n    global gain\n    gain += 0.25\n    return gain\n" + STEP.format("get()"))
    yield user.step
    yield user.step


@way
def a_class_that_counts() -> Iterator[Any]:
    class Own(Plain):
        gain = 0.5

        def step(self, x: Tensor, h: Tensor) -> Any:
            type(self).gain += 0.25
            return super().step(x, h)

    thing = Own()
    yield thing.step
    yield thing.step


class Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor) -> Tensor:
        return torch.tanh(h)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 0.5 * g


@way
def the_backward_of_a_function() -> Iterator[Any]:
    def step(x: Tensor, h: Tensor) -> Any:
        h = Slope.apply(h) + x
        return h, h

    yield step
    with put(Slope, "backward", staticmethod(lambda ctx, g: 2.0 * g)):
        yield step


@way
def what_the_backward_of_a_function_reads() -> Iterator[Any]:
    box = [0.5]

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, h: Tensor) -> Tensor:
            return torch.tanh(h)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return box[0] * g

    def step(x: Tensor, h: Tensor) -> Any:
        h = Own.apply(h) + x
        return h, h

    yield step
    box[0] = 2.0
    yield step


@way
def a_graph_recompiled() -> Iterator[Any]:
    class Cell(Scaled):
        def forward(self, x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(h) + x
            return h, h

    made = torch.fx.symbolic_trace(Cell())
    yield made
    for node in made.graph.nodes:
        if node.target is torch.tanh:
            node.target = torch.cos
    made.recompile()
    yield made
