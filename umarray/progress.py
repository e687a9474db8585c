"""Progress bars: tqdm's, where it is installed and somebody looks.

A bar is shown on a terminal and in a notebook, never in a log file or a pipe, and ``UMARRAY_PROGRESS=0`` shows none
anywhere. A bar that fails is dropped: it never ends the work that it counts.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import TracebackType
from typing import Any, final

from umarray import settings
from umarray.log import log

VARIABLE = "UMARRAY_PROGRESS"


@final
class Bar:
    """A progress bar, or none: the same calls do nothing then.

    Notes
    -----
    For one thread at a time. Never raises.
    """

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def update(self, count: int = 1) -> None:
        """So many more are done."""
        self._call("update", count)

    def say(self, text: str) -> None:
        """What is being done now."""
        self._call("set_postfix_str", text)

    def close(self) -> None:
        """The work is over."""
        self._call("close")
        self.inner = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _call(self, name: str, *values: Any) -> None:
        if self.inner is None:
            return
        try:
            getattr(self.inner, name)(*values)
        except Exception:
            self.inner = None
            log.debug("umarray: a progress bar failed and was dropped", exc_info=True)


def wanted(asked: bool | None, *, default: bool) -> bool:
    """Whether a bar is wanted: ``UMARRAY_PROGRESS=0`` before the argument, the argument before ``UMARRAY_PROGRESS=1``.

    Parameters
    ----------
    asked : bool or None
        The caller's argument; None leaves it to the environment, and then to `default`.
    """
    if VARIABLE not in os.environ:
        return default if asked is None else asked
    return settings.text(VARIABLE) is not None and asked is not False


def bar(total: int | None, what: str, *, unit: str, asked: bool | None = None, default: bool = True) -> Bar:
    """A bar over `total` things (None: nobody knows how many), or an empty one.

    Parameters
    ----------
    what : str
        Stands before the bar.
    unit : str
        What is counted.
    asked, default : bool
        See `wanted`.

    Examples
    --------
    >>> from umarray.progress import bar
    >>> with bar(3, "counting", unit="thing") as progress:  # a doctest is no terminal
    ...     for _ in range(3):
    ...         progress.update()
    """
    if not wanted(asked, default=default):
        return Bar()
    notebook = _in_a_kernel()
    if not notebook and not _is_terminal(sys.stderr):
        return Bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tqdm.auto warns where a kernel has no ipywidgets: then the bar is text
            from tqdm.auto import tqdm
    except ImportError:
        return Bar()
    try:
        size = {"dynamic_ncols": True} if notebook or _has_a_size(sys.stderr) else {"ncols": 80, "nrows": 24}
        return Bar(tqdm(total=total, desc=what, unit=unit, **size))
    except Exception:
        log.debug("umarray: a progress bar could not be made", exc_info=True)
        return Bar()


def length(source: Any) -> int | None:
    """How many items `source` says it has; None where it does not say, or fails to."""
    try:
        return len(source)
    except Exception:
        return None


def _is_terminal(file: Any) -> bool:
    try:
        return bool(file.isatty())
    except Exception:  # no file at all (a daemon), or a closed one
        return False


def _has_a_size(file: Any) -> bool:
    """Whether a terminal says how large it is; some containers and scripts leave it at nothing, and tqdm shows that."""
    try:
        return all(os.get_terminal_size(file.fileno()))
    except Exception:
        return False


def _in_a_kernel() -> bool:
    """Whether this is a notebook's kernel; IPython in a terminal is a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
