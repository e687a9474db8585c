"""Whether this process is a forked child of the one that opened a device: no GPU runtime survives a fork."""

from __future__ import annotations

import os

from umarray.errors import ForkedProcess

_forks = 0


def generation() -> int:
    """How many forks lie between this process and the first one; what a driver remembers of its birth."""
    return _forks


def check(born: int) -> None:
    """Refuse to go on in a forked child.

    Raises
    ------
    ForkedProcess
        A fork lies between `born` and now.
    """
    if born != _forks:
        raise ForkedProcess(
            f"process {os.getpid()} was forked after its parent had opened a device, which no GPU runtime survives: "
            "start children with multiprocessing's 'spawn' or 'forkserver' method"
        )


def _in_child() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_in_child)
