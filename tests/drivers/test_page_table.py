"""The kernel's page table: what was touched is there, what was not is not; samples of what is large; no /proc."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
import pytest

from umarray.drivers import page_table
from umarray.drivers.page_table import PageTable

PAGE = mmap.PAGESIZE


@pytest.fixture
def memory() -> Any:
    pages = mmap.mmap(-1, 64 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)  # else one touch brings a large page
    return np.frombuffer(pages, np.uint8)


@pytest.fixture
def table() -> PageTable:
    found = PageTable()
    if not found.readable:
        pytest.skip("/proc/self/pagemap cannot be read here")
    return found


def test_pages_are_present_once_they_are_touched(table: PageTable, memory: Any) -> None:
    address = memory.ctypes.data
    assert table.share(address, 64 * PAGE) == 0
    memory[: 16 * PAGE : PAGE] = 1
    assert table.share(address, 64 * PAGE) == 0.25
    assert table.share(address, 16 * PAGE) == 1 and table.share(address + 16 * PAGE, 48 * PAGE) == 0


def test_a_range_counts_the_pages_that_it_touches(table: PageTable, memory: Any) -> None:
    address = memory.ctypes.data
    memory[0] = 1
    assert table.share(address + PAGE - 1, 1) == 1
    assert table.share(address + PAGE - 1, 2) == 0.5
    assert table.share(address + PAGE, PAGE) == 0


def test_a_large_range_is_sampled_from_end_to_end(
    table: PageTable, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_table, "_MOST", 16)
    monkeypatch.setattr(page_table, "_SAMPLES", 4)
    address, read = memory.ctypes.data, list[int]()
    original = os.pread
    monkeypatch.setattr(os, "pread", lambda file, n, at: read.append(at // 8) or original(file, n, at))
    memory[: 32 * PAGE : PAGE] = 1
    assert table.share(address, 64 * PAGE) == 0.5
    assert [page - address // PAGE for page in read] == [0, 20, 40, 60]


def test_without_proc_it_is_not_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> int:
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "open", refuse)
    assert not PageTable().readable and not PageTable().readable
