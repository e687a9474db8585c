"""What arrays are called: in the frames of who watches, or in the line that made them."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from umarray.drivers import get_driver
from umarray.drivers.base import Driver
from umarray.events import Named
from umarray.residency.spans import layout_of

_FRAMES = 16  # of the stack, the innermost first
_MEMBERS = 64  # of a container


def look(frame: FrameType | None) -> tuple[Named, ...]:
    """The arrays that a frame and its callers can name, an address range once, the innermost name first.

    Parameters
    ----------
    frame : frame
        Where to begin; its locals, then those of its callers, then the globals of each.

    Notes
    -----
    Lists, tuples and dicts are entered, and attributes of plain objects (``self.weights``), one level deep. No code of
    the user's runs, and no reference is kept.
    """
    driver = get_driver()
    found: dict[tuple[int, int, tuple[int, ...]], Named] = {}
    for space in _spaces(frame):
        for name, value in list(space.items()):
            if isinstance(name, str) and not name.startswith("_"):
                for path, x in _arrays(driver, name, value):
                    start, stop = layout_of(x).range
                    key = (start, stop, tuple(x.shape))
                    if stop > start and key not in found:
                        found[key] = Named(path, start, stop - start, tuple(x.shape), str(x.dtype))
    return tuple(found.values())


def assigned(line: str) -> str:
    """The name that a line of a file gives to what it makes; empty where it names none, or cannot be read.

    Parameters
    ----------
    line : str
        `file:number`.

    Examples
    --------
    >>> assigned("no such file:3")
    ''
    """
    filename, _, number = line.rpartition(":")
    if not number.isdigit():
        return ""
    text = linecache.getline(filename, int(number)).strip()
    try:
        statement = ast.parse(text).body[0] if text else None
    except (SyntaxError, ValueError):
        statement = _head(text)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return ""
    return ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""


def _head(text: str) -> ast.stmt | None:
    """A statement that begins on this line and does not end on it."""
    target, equals, _ = text.partition("=")
    try:
        return ast.parse(f"{target}= 0").body[0] if equals else None
    except (SyntaxError, ValueError):
        return None


def _spaces(frame: FrameType | None) -> Iterator[Mapping[str, Any]]:
    frames: list[FrameType] = []
    while frame is not None and len(frames) < _FRAMES:
        frames.append(frame)
        frame = frame.f_back
    seen: set[int] = set()
    for one in frames:
        if one.f_locals is not one.f_globals:
            yield one.f_locals
    for one in frames:
        if id(one.f_globals) not in seen:
            seen.add(id(one.f_globals))
            yield one.f_globals


def _arrays(driver: Driver, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind: type[Any] = driver.xp.ndarray
    if isinstance(value, kind):
        yield name, value
        return
    members: list[tuple[str, Any]] = []
    if type(value) in (list, tuple):
        members = [(f"{name}[{index}]", one) for index, one in enumerate(value[:_MEMBERS])]
    elif type(value) is dict:
        members = [
            (f"{name}[{key!r}]", one) for key, one in list(value.items())[:_MEMBERS] if isinstance(key, (str, int))
        ]
    elif not isinstance(value, type) and type(value).__module__ not in ("builtins", "types"):
        try:
            held = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return
        if type(held) is dict:
            members = [(f"{name}.{key}", one) for key, one in list(held.items())[:_MEMBERS] if isinstance(key, str)]
    for path, one in members:
        if isinstance(one, kind):
            yield path, one
