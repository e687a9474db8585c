"""Which pages the host reaches without a fault, by the kernel's own page table of this process.

Linux, Documentation/admin-guide/mm/pagemap.rst: 8 bytes a page in /proc/self/pagemap, bit 63 says that it is present;
any process may read that of its own. A page that migrated to a device is not present, nor is one never touched.
"""

from __future__ import annotations

import mmap
import os
import threading

import numpy as np

_ENTRY = 8
_PRESENT = 0x80  # of an entry's last byte; x86-64, AArch64 and POWER in use are little-endian
_MOST = 1 << 11  # pages read in one go: 8 MiB, some 10 us
_SAMPLES = 16


class PageTable:
    """The page table of the process that made it.

    Notes
    -----
    Safe from any thread. Where /proc hides it, `readable` is False and nobody may ask for a share.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._lock = threading.Lock()

    @property
    def readable(self) -> bool:
        """Whether it can be read here."""
        if self._file is None:
            with self._lock:
                if self._file is None:
                    self._file = _open()
        return self._file >= 0

    def share(self, address: int, nbytes: int) -> float:
        """The share of a range's pages that are present; of a large range, of pages spread evenly over it."""
        assert self.readable and self._file is not None
        first = address // mmap.PAGESIZE
        count = (address + nbytes - 1) // mmap.PAGESIZE - first + 1
        if count <= _MOST:
            return _present(self._file, first, count) / count
        run = _MOST // _SAMPLES
        starts = (first + index * (count - run) // (_SAMPLES - 1) for index in range(_SAMPLES))
        return sum(_present(self._file, start, run) for start in starts) / _MOST

    def __del__(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)


def _open() -> int:
    try:
        return os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _present(file: int, first: int, count: int) -> int:
    """How many of `count` pages from the page `first` on are present."""
    flags = os.pread(file, count * _ENTRY, first * _ENTRY)[_ENTRY - 1 :: _ENTRY]
    if flags.count(0) == count:  # none, which is what is asked about most
        return 0
    return int(np.count_nonzero(np.frombuffer(flags, np.uint8) >= _PRESENT))
