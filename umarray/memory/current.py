"""The pool of a thread and the pool of the process: pool, install, uninstall, record_use."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from umarray.drivers import get_driver
from umarray.drivers.base import Mode
from umarray.memory import active, deferred
from umarray.memory.host_pool import HostPool
from umarray.memory.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

_lock = threading.Lock()
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

    The pool is closed; arrays that are alive keep their memory.
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

    It has the default limit, and tracks nothing. CuPy's own functions do not use it.

    Examples
    --------
    >>> from umarray.memory import default_pool
    >>> default_pool() is default_pool()
    True
    """
    global _default
    with _lock:
        if _default is None or _default.driver is not get_driver():
            _default = pool_class()()
        return _default


def pool_for(pool: Pool | None) -> Any:
    """`pool`, else the calling thread's, else the process's, else a pool of ours that CuPy has, else the default."""
    if pool is not None:
        return pool
    current = active.current()
    if current is None and get_driver().xp is not np:
        current = getattr(get_driver().xp.cuda.get_allocator(), "__self__", None)
    return current if isinstance(current, Pool) else default_pool()


def record_use(x: Any, *streams: Any) -> None:
    """Say that `streams` work on `x`: its memory is handed out again only when what they have queued so far is done.

    Parameters
    ----------
    x : array
        An array of `umarray.xp`, any view of it. Call it after the last use on those streams.
    *streams : stream or int
        CuPy's, PyTorch's, or handles. With none, nothing happens.

    Examples
    --------
    >>> import umarray as um
    >>> um.record_use(um.zeros(3), 0)
    """
    driver = get_driver()
    handles = [stream_handle(stream) for stream in streams]
    block, device = _block(x)
    deferred.drain()
    if handles and block is not None:
        deferred.hold(block, tuple(driver.record(handle, device) for handle in handles))


def stream_handle(stream: Any) -> int:
    """The runtime's handle of a stream of CuPy's (`ptr`), PyTorch's (`cuda_stream`), or an int."""
    for name in ("ptr", "cuda_stream"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int) and not isinstance(handle, bool):
            return handle
    if isinstance(stream, bool) or not hasattr(type(stream), "__index__"):
        raise TypeError(f"a stream must be CuPy's, PyTorch's or an int, not {stream!r}")
    if stream.__index__() < 0:
        raise ValueError(f"a stream's handle cannot be {stream!r}")
    return int(stream.__index__())


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
