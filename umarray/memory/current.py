"""The pool of a thread and the pool of the process: pool, install, uninstall, record_use."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from umarray.drivers import get_driver
from umarray.drivers.base import Mode
from umarray.drivers.streams import as_stream
from umarray.memory import active, deferred
from umarray.memory.host_pool import HostPool
from umarray.memory.owners import DEFAULT_STREAMS
from umarray.memory.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

_lock = threading.RLock()  # a finaliser may allocate while it is held
_default: Pool | None = None
_installed: tuple[Pool, tuple[Any, ...], Callable[[], None]] | None = None


def pool_class() -> type[Any]:
    """The class of pool that fits the mode of this process."""
    driver = get_driver()
    if driver.xp is np:
        return HostPool
    cupy_pool: Any = importlib.import_module("umarray.memory.cupy_pool")  # not before CuPy is known to be here
    managed = driver.mode is Mode.MANAGED
    return cupy_pool.ManagedMemoryPool if managed else cupy_pool.DeviceMemoryPool  # type: ignore[no-any-return]


def pool(arena_bytes: Any = None, **settings: Any) -> Any:
    """A pool that fits the mode, for the thread that enters it: ``with um.pool("2GiB") as pool:``.

    Parameters
    ----------
    arena_bytes, limit, headroom, oversubscribe, coarse_grain, track
        As for `Pool`.

    Returns
    -------
    pool
        Closed at the end of its `with` block; arrays that are still alive keep their memory.

    Examples
    --------
    >>> import umarray as um
    >>> with um.pool("1MiB") as pool:
    ...     x = um.zeros((10, 10))
    ...     pool.statistics().arenas
    1
    """
    made = pool_class()(arena_bytes, **settings)
    made._scoped = True
    return made


def install(arena_bytes: Any = None, **settings: Any) -> Any:
    """Make a pool the whole process's, in every thread that has none of its own.

    Parameters
    ----------
    arena_bytes, limit, headroom, oversubscribe, coarse_grain, track
        As for `Pool`.

    Returns
    -------
    pool
        The installed pool; installing again with equal arguments gives the same one.

    Raises
    ------
    RuntimeError
        A pool with other arguments is installed.

    Notes
    -----
    With CuPy the pool also takes the place of its default pool, so that `cupy.get_default_memory_pool()`, its
    `free_all_blocks` and the retry of CuPy's FFT reach the pool that is in use.

    Examples
    --------
    >>> import umarray as um
    >>> pool = um.install("1MiB")
    >>> um.install("1MiB") is pool
    True
    >>> um.uninstall()
    """
    global _installed
    asked = (arena_bytes, *sorted(settings.items()))
    with _lock:
        if _installed is not None and _installed[0].closed:
            uninstall()
        if _installed is not None:
            if _installed[1] == asked:
                return _installed[0]
            raise RuntimeError(
                f"a pool with other arguments is installed ({_installed[1]!r}): call umarray.uninstall() first"
            )
        made = pool_class()(arena_bytes, **settings)
        undo = made.install_allocator()
        active.install(made)
        _installed = (made, asked, undo)
        return made


def uninstall() -> None:
    """Put back what was there before `install`; without an installed pool, nothing happens.

    The pool is closed; arrays that are alive keep their memory. Allowed anywhere, inside a `with` block that sets the
    thread's own allocator too.
    """
    global _installed
    with _lock:
        if _installed is None:
            return
        made, _, undo = _installed
        undo()
        active.uninstall(made)
        _installed = None
    made.close()


def installed() -> Pool | None:
    """The process's pool, or None."""
    return None if _installed is None else _installed[0]


def default_pool() -> Any:
    """The pool that `umarray.empty` and its like use where there is no other: made when first needed, and kept.

    It has the default limit, and tracks nothing. CuPy's own functions do not use it. Closed, it is made anew.

    Examples
    --------
    >>> from umarray.memory import default_pool
    >>> default_pool() is default_pool()
    True
    """
    global _default
    if not _usable(_default):
        made = pool_class()()
        with _lock:
            if not _usable(_default):
                _default = made
    return _default


def _usable(pool: Pool | None) -> bool:
    return pool is not None and not pool.closed and pool.driver is get_driver()


def pool_for(pool: Pool | None) -> Any:
    """`pool`, else the calling thread's, else the process's, else a pool of ours that CuPy has, else the default."""
    if pool is not None:
        return pool
    current = active.current()
    if current is None and get_driver().xp is not np:
        current = getattr(get_driver().xp.cuda.get_allocator(), "__self__", None)
    return current if isinstance(current, Pool) else default_pool()


def pools_at_hand() -> list[Pool]:
    """The pools of the calling thread, the process's and the default one, where there are such; each once."""
    found = [*active.pools(), _default]
    return list(dict.fromkeys(pool for pool in found if pool is not None and not pool.closed))


def track_here() -> active.Entry | None:
    """Track what the calling thread allocates from the pool it has now, until the entry is left; None: no need to."""
    current = active.current()
    if current is None and get_driver().xp is not np:
        current = getattr(get_driver().xp.cuda.get_allocator(), "__self__", None)
    return current.track_here() if isinstance(current, Pool) and not current.closed else None


def record_use(x: Any, *streams: Any) -> None:
    """Say that `streams` work on `x`: its memory is handed out again only when what they have queued so far is done.

    Parameters
    ----------
    x : array
        An array of `umarray.xp`, any view of it. Call it after the last use on those streams.
    *streams : stream or int
        CuPy's, PyTorch's, or handles, of any device. With none, nothing happens. A default stream is that of the
        current device, as everywhere in CuPy; another bare handle counts as one of the array's device.

    Examples
    --------
    >>> import umarray as um
    >>> um.record_use(um.zeros(3), 0)
    """
    driver = get_driver()
    given = [as_stream(stream) for stream in streams]
    block, device = _block(x)
    deferred.drain()
    if given and block is not None:
        here = driver.current_device()
        uses = [(handle, here if handle in DEFAULT_STREAMS and on is None else on) for handle, on in given]
        deferred.hold(block, tuple(driver.record(handle, device if on is None else on) for handle, on in uses))


def _block(x: Any) -> tuple[object, int]:
    """What keeps the memory of `x` alive, and its device."""
    driver = get_driver()
    if driver.xp is not np:
        if not isinstance(x, driver.xp.ndarray):
            raise TypeError(f"record_use takes an array of CuPy's, not {type(x).__name__}")
        return x.data.mem, int(x.data.device_id)
    if not isinstance(x, np.ndarray):
        raise TypeError(f"record_use takes an array of NumPy's, not {type(x).__name__}")
    base: Any = x
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return getattr(base, "owner", base), driver.current_device()
