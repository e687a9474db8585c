"""What umarray tells on its own: through `logging`, under the name ``umarray``, each thing once.

Warnings that belong to a line of the caller's program are Python warnings (`umarray.UmarrayWarning`). What happens
where no line can be blamed and no exception can be raised (on leaving a scope, in a thread, in a finaliser) is logged:
the first time as a warning in one line, with its traceback at the level DEBUG; later ones at DEBUG only. Everything
else is at INFO or below.

The logger has no handler. So a program that has set up no logging sees the warnings, on standard error, and nothing
else; ``logging.getLogger("umarray").setLevel("ERROR")`` silences them.
"""

from __future__ import annotations

import logging

log = logging.getLogger("umarray")

_told: dict[object, object] = {}


def warn_once(text: str, *values: object, error: BaseException | None = None, about: object = None) -> None:
    """Log a warning, once a process for each thing that it is about.

    Parameters
    ----------
    text : str
        What happened, and what it means; with %-places for `values`, as `logging` has them.
    error : exception, optional
        Its kind and text end the line; its traceback is logged at DEBUG.
    about : hashable, optional
        What makes it the same thing: `text` by default.

    Notes
    -----
    Safe from any thread, and never raises for a handler that fails (`logging` sees to that).
    """
    mine = object()
    first = _told.setdefault((text, about), mine) is mine  # one step: a finaliser may come here within any lock
    line = f"umarray: {text}"
    if error is not None:
        line, values = f"{line}: %s: %s", (*values, type(error).__name__, " ".join(str(error).split()))
    log.log(logging.WARNING if first else logging.DEBUG, line, *values)
    if error is not None:
        log.debug("umarray: the traceback of what was told last", exc_info=error)


def forget() -> None:
    """Tell everything anew (for tests)."""
    _told.clear()
