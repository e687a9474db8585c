"""Which arrays are alive in a notebook, and what keeps them: a name, the output history, or the last error's frames."""

from __future__ import annotations

import gc
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

import numpy as np

from umarray.drivers import get_driver
from umarray.lines import called

NAME, HISTORY, ERROR = "a name", "the output history", "the last error"
MOST_OBJECTS = 300_000  # searched: about a quarter of a second
_NUMBERED = re.compile(r"_\d+")
_CLOSED = (ModuleType, type, CodeType, BuiltinFunctionType, FrameType, TracebackType, str, bytes, int, float, complex)


@dataclass(frozen=True, slots=True)
class Alive:
    """One block of memory that an array keeps alive. No reference to it is kept."""

    name: str
    """How the array is reached: ``table``, ``Out[3]``, ``x in f, In[2], line 3``."""
    by: str
    """`NAME`, `HISTORY` or `ERROR`, the first of them that reaches it."""
    shape: tuple[int, ...]
    dtype: str
    memory: str
    """"managed", "device", "pinned" or "host"."""
    address: int
    nbytes: int
    """Bytes of the block, of which the array may be a small view."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, the largest first."""

    arrays: tuple[Alive, ...]
    whole: bool
    """Everything was searched; else the search was given up after `MOST_OBJECTS` objects."""

    def by(self, who: str) -> tuple[Alive, ...]:
        """Those of one kind."""
        return tuple(one for one in self.arrays if one.by == who)


def alive_in(shell: Any) -> Found:
    """What an IPython shell keeps alive.

    Notes
    -----
    Reads references only: no code of the user's runs. Names are searched first, then the history, then the last error,
    so what is found in the history has no name, and what is found in the error is in neither. In host mode only arrays
    in a pool's memory count.
    """
    search = _Search(_closed(shell))
    hidden = _history_names(shell)
    for name, value in list(shell.user_ns.items()):  # in the order in which they were made
        if name not in hidden:
            search.enter(name, NAME, value)
    for name, value in _outputs(shell, hidden):
        search.enter(name, HISTORY, value)
    for name, value in _error_locals(shell):
        search.enter(name, ERROR, value)
    found = sorted(search.found.values(), key=lambda one: -one.nbytes)
    return Found(tuple(found), search.left > 0)


def forget(shell: Any) -> None:
    """Drop the output history and the last error, and collect what they kept alive."""
    hook = shell.displayhook
    for name in [name for name, _ in _outputs(shell, _history_names(shell)) if name in shell.user_ns]:
        for space in (shell.user_ns, shell.user_ns_hidden):
            space.pop(name, None)
        if not _NUMBERED.fullmatch(name):
            shell.user_ns[name] = shell.user_ns_hidden[name] = ""
    shell.user_ns.get("_oh", {}).clear()
    hook._ = hook.__ = hook.___ = ""
    for name in ("last_exc", "last_value", "last_traceback", "last_type"):
        if hasattr(sys, name):
            delattr(sys, name)
    shell.InteractiveTB.tb = None
    shell.last_execution_result = None
    gc.collect()


class _Search:
    """A walk over references that enters nothing twice, and no module, class or other function's globals."""

    def __init__(self, closed: Iterable[object]) -> None:
        self._driver = get_driver()
        self._array: type[Any] = self._driver.xp.ndarray
        self._keep = list(closed)  # an id stands for an object only while that lives
        self._seen = {id(one) for one in self._keep}
        self.found: dict[tuple[int, int], Alive] = {}
        self.left = MOST_OBJECTS

    def enter(self, name: str, by: str, root: object) -> None:
        """Search what `root` refers to."""
        self._keep.append(root)
        waiting: deque[object] = deque([root])
        while waiting and self.left > 0:
            value = waiting.popleft()
            kind = type(value)
            if id(value) in self._seen or issubclass(kind, _CLOSED):
                continue
            self._seen.add(id(value))
            self.left -= 1
            if issubclass(kind, self._array):
                self._note(name, by, value)
            if issubclass(kind, np.ndarray):  # NumPy shows the garbage collector nothing
                array: Any = value
                waiting.extend([array.base, *(array.flat if array.dtype.hasobject else ())])
            elif issubclass(kind, FunctionType):
                function: Any = value
                waiting.extend((function.__closure__, function.__defaults__, function.__kwdefaults__))
            elif issubclass(kind, MethodType):
                method: Any = value
                waiting.append(method.__self__)
            else:
                self._keep.append(referents := gc.get_referents(value))
                waiting.extend(referents)

    def _note(self, name: str, by: str, array: Any) -> None:
        address, nbytes = _block(array, self._driver.xp is np)
        known = self._driver.find(address) if nbytes else None
        if nbytes and (known is not None or self._driver.xp is not np) and (address, nbytes) not in self.found:
            memory = "device" if known is None else known.kind.value
            self.found[address, nbytes] = Alive(name, by, tuple(array.shape), str(array.dtype), memory, address, nbytes)


def _block(array: Any, on_host: bool) -> tuple[int, int]:
    """Address and bytes of the memory that an array keeps alive."""
    if not on_host:
        return int(array.data.mem.ptr), int(array.data.mem.size)
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        array, base = base, base.base
    owner: Any = getattr(base, "owner", None)
    owner = getattr(owner, "inner", owner)
    if hasattr(owner, "address") and hasattr(owner, "nbytes"):
        return int(owner.address), int(owner.nbytes)
    return int(array.ctypes.data), int(array.nbytes)


def _closed(shell: Any) -> Iterator[object]:
    """What leads to everything."""
    yield from (shell, shell.user_ns, shell.user_global_ns, shell.displayhook, sys.modules)
    yield from (shell.user_ns.get("_oh"), shell.user_ns.get("_ih"), getattr(shell, "kernel", None))


def _history_names(shell: Any) -> frozenset[str]:
    """Names in the notebook that IPython made."""
    space: Mapping[str, Any] = shell.user_ns
    mine = {name for name, value in shell.user_ns_hidden.items() if space.get(name) is value}
    numbered = {name for name in space if _NUMBERED.fullmatch(name) and int(name[1:]) in space.get("_oh", {})}
    last = {name for name in ("_", "__", "___") if space.get(name) is getattr(shell.displayhook, name, None)}
    return frozenset(mine | numbered | last | {"In", "Out", "_ih", "_oh", "_dh", "_i", "_ii", "_iii"})


def _outputs(shell: Any, hidden: frozenset[str]) -> Iterator[tuple[str, object]]:
    for number, value in list(shell.user_ns.get("_oh", {}).items()):
        yield f"Out[{number}]", value
    for name in ("_", "__", "___", *sorted(name for name in hidden if _NUMBERED.fullmatch(name))):
        if name in hidden and name in shell.user_ns:
            yield name, shell.user_ns[name]


def _error_locals(shell: Any) -> Iterator[tuple[str, object]]:
    """What the errors that Python and IPython remember hold: the locals of their frames, and their own contents."""
    result = shell.last_execution_result
    waiting: deque[Any] = deque([getattr(sys, "last_exc", None), getattr(sys, "last_value", None)])
    waiting.append(None if result is None else result.error_in_exec)
    for trace in (getattr(sys, "last_traceback", None), getattr(shell.InteractiveTB, "tb", None)):
        yield from _locals(trace, shell)
    seen: set[int] = set()
    while waiting:
        error = waiting.popleft()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        waiting.extend((error.__cause__, error.__context__, *getattr(error, "exceptions", ())))
        yield from _locals(error.__traceback__, shell)
        yield f"the last {type(error).__name__} itself", (error.args, vars(error))


def _locals(trace: TracebackType | None, shell: Any) -> Iterator[tuple[str, object]]:
    while trace is not None:
        frame, code = trace.tb_frame, trace.tb_frame.f_code
        theirs = frame.f_globals.get("__name__", "").partition(".")[0] in ("IPython", "ipykernel")
        if not theirs and frame.f_locals is not shell.user_ns:
            line = called(f"{code.co_filename}:{trace.tb_lineno}")
            for name, value in sorted(frame.f_locals.items()):
                yield f"{name} in {code.co_name}, {line}", value
        trace = trace.tb_next
