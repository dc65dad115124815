"""A process that goes ahead: it finds and reads files while this one still loads the rules, then shares the work.

What to look for is known only once the rules are loaded. Until it is told, the scout keeps what it read and notes what needs
no rule. Both processes then take files from one queue. If the scout dies, what it took is looked at here.

This module imports little, so that the scout leaves early; the rest is imported by both processes at the same time.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import IO, TYPE_CHECKING

from gradsmith.linting import pool
from gradsmith.source import scan

if TYPE_CHECKING:
    from gradsmith.catalog import Rule
    from gradsmith.linting.first_look import Ahead, FirstLook, Wanted

_HOLDS = 32 << 20  # bytes that are kept unjudged
# Reading and what needs no rule are two fifths of the work on a file. So the rest of three fifths of the files takes as long
# here as all of the others does in the process that loaded the rules.
_AHEAD = 0.6


class Scout:
    """The process, and the pipes to it. `find` lists the files."""

    def __init__(self, find: Callable[[], list[scan.Seen]]) -> None:
        self.find = find
        self.queue = pool.Queue()
        orders, self._orders = os.pipe()
        self._found, found = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._orders)
                with os.fdopen(orders, "rb") as inward, os.fdopen(found, "wb") as outward:
                    _go_ahead(find, self.queue, inward, outward)
            finally:
                os._exit(0)
        os.close(orders)
        os.close(found)
        self.queue.only_take()

    def looks(self, wanted: Wanted) -> list[FirstLook]:
        """What all processes saw in the files."""
        import pickle

        from gradsmith.linting.first_look import look

        try:
            with os.fdopen(self._orders, "wb", closefd=False) as outward:
                pickle.dump(wanted, outward)
            stream = os.fdopen(self._found, "rb", closefd=False)
            listed: list[scan.Seen] = pickle.load(stream)
        except (EOFError, OSError, pickle.UnpicklingError):
            listed = self.find()  # what went wrong there is repeated here, where an error can be told
            return [look(listed, wanted, range(len(listed)))]
        places = range(len(listed))
        self.queue.numbers = places
        looks = pool.side_by_side([partial(look, listed, wanted, self.queue)] * max(1, pool.processors() - 1))
        with contextlib.suppress(EOFError, pickle.UnpicklingError):
            looks.append(pickle.load(stream))
        return pool.with_lost(partial(look, listed, wanted), places, looks)

    def end(self) -> None:
        """Also where nobody asked for what it saw."""
        for descriptor in (self._orders, self._found):
            os.close(descriptor)
        self.queue.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def looked_at(sources: Iterable[scan.Seen] | Scout, rules: Sequence[Rule]) -> FirstLook:
    """The first look, by a scout where one was sent."""
    from gradsmith.linting.first_look import Wanted, look_at, whole

    return whole(sources.looks(Wanted.by(rules))) if isinstance(sources, Scout) else look_at(sources, rules)


def _go_ahead(find: Callable[[], list[scan.Seen]], queue: pool.Queue, inward: IO[bytes], outward: IO[bytes]) -> None:
    import gc
    import pickle

    from gradsmith.linting.first_look import look

    gc.disable()
    listed = find()
    queue.fill(range(len(listed)))
    taken = iter(queue)
    ahead = list(_read_ahead(listed, taken, inward))
    wanted: Wanted = pickle.load(inward)
    pickle.dump(listed, outward, protocol=pickle.HIGHEST_PROTOCOL)
    outward.flush()
    places = chain((each.place for each in ahead), taken)
    pickle.dump(look(listed, wanted, places, ahead), outward, protocol=pickle.HIGHEST_PROTOCOL)


def _read_ahead(listed: Sequence[scan.Seen], taken: Iterator[int], inward: IO[bytes]) -> Iterator[Ahead]:
    """Until there is word from the one who loads the rules."""
    from gradsmith.linting.first_look import Ahead

    held = 0
    for _ in range(int(_AHEAD * len(listed))):
        if held > _HOLDS or select.select([inward], [], [], 0)[0]:
            return
        place = next(taken, None)
        if place is None:
            return
        file = listed[place]
        source = scan.read(file) if isinstance(file, scan.Unread) else file
        data = source.data if isinstance(source, scan.SourceFile) else b""
        held += len(data)
        yield Ahead(place, source, scan.known(data))
