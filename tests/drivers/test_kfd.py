from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue

import pytest

from umarray.drivers import kfd

# As kfd_smi_events.c writes them; the first migration is of 512 pages.
LINES = [
    "7 81529000000 -411 @7f24000(8f2c) W",
    "5 81529000100 -411 @7f24000(200) 0->8f2c ffffffff:0 1",
    "6 81529000900 -411 @7f24000(200) 0->8f2c 1",
    "8 81529001000 -411 @7f24000(8f2c) M",
    "6 81530000000 -411 @7f24000(200) 8f2c->0 2 0",
    "6 81530000000 -411 @7f24000(200) 8f2c->0 0 -12",
    "9 81531000000 -411 8f2c 0",
    "2 0:3",
]


def test_lines_are_understood() -> None:
    found = [kfd.parse(line, 4096) for line in LINES]
    assert found == [
        kfd.Fault(81529000000, 0x7F24000000, 0x8F2C, True),
        kfd.Migration(True, 81529000100, 0x7F24000000, 2 << 20, 0, 0x8F2C, "device fault", False),
        kfd.Migration(False, 81529000900, 0x7F24000000, 2 << 20, 0, 0x8F2C, "device fault", False),
        None,
        kfd.Migration(False, 81530000000, 0x7F24000000, 2 << 20, 0x8F2C, 0, "host fault", False),
        kfd.Migration(False, 81530000000, 0x7F24000000, 2 << 20, 0x8F2C, 0, "prefetch", True),
        kfd.Eviction(81531000000, 0x8F2C),
        None,
    ]


@pytest.mark.parametrize("line", ["", "x", "6", "6 1 2 3", "7 12 -1 @zz(1) R", "6 1 -1 @1(1) 0->1 99 0 7"])
def test_what_is_no_such_line_is_nothing(line: str) -> None:
    assert kfd.parse(line, 4096) is None


def test_a_trigger_that_is_not_known_yet_is_other() -> None:
    found = kfd.parse("6 1 -1 @1(1) 0->1 9", 4096)
    assert isinstance(found, kfd.Migration) and found.trigger == "other"


def test_pages_may_be_larger() -> None:
    found = kfd.parse(LINES[2], 65536)
    assert isinstance(found, kfd.Migration) and found.nbytes == 32 << 20


class Machine:
    """A /dev/kfd whose event files are pipes."""

    def __init__(self, root: Path) -> None:
        (root / "dev").mkdir()
        (root / "dev/kfd").touch()
        self.root = root
        self.asked: list[int] = []
        self.ends: dict[int, int] = {}
        self.masks: dict[int, int] = {}

    def ioctl(self, descriptor: int, request: int, argument: bytearray) -> None:
        assert request == 0xC0084B1F
        gpu_id, _ = struct.unpack("II", argument)
        if gpu_id == 13:
            raise OSError("no such GPU")
        self.asked.append(gpu_id)
        ours, self.ends[gpu_id] = os.pipe()
        argument[:] = struct.pack("II", gpu_id, ours)

    def say(self, gpu_id: int, text: str) -> None:
        os.write(self.ends[gpu_id], text.encode())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if len(data) == 8 and descriptor not in machine.ends.values():  # the mask; a pipe's reading end takes none
            machine.masks[descriptor] = struct.unpack("Q", data)[0]
            return 8
        return real(descriptor, data)

    monkeypatch.setattr(kfd.os, "write", write)
    yield machine
    for descriptor in machine.ends.values():
        os.close(descriptor)


def test_event_files_are_opened_with_the_mask(machine: Machine) -> None:
    files = kfd.open_events([36652, 50237], machine.root, machine.ioctl)
    assert machine.asked == [36652, 50237] and list(files) == machine.asked
    wanted = sum(1 << (number - 1) for number in (5, 6, 7, 9))
    assert machine.masks == dict.fromkeys(files.values(), wanted)
    for descriptor in files.values():
        assert not os.get_blocking(descriptor) and not os.get_inheritable(descriptor)
        os.close(descriptor)


def test_one_gpu_that_cannot_be_opened_leaves_none_open(machine: Machine) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no such GPU"):
        kfd.open_events([36652, 13], machine.root, machine.ioctl)
    os.close(machine.ends.pop(36652))
    assert set(os.listdir("/proc/self/fd")) == before


def test_without_a_kfd(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kfd.open_events([1], tmp_path)


@pytest.fixture
def reading(machine: Machine) -> Iterator[tuple[Callable[[str], None], Queue[kfd.Happening], kfd.Reader]]:
    told: Queue[kfd.Happening] = Queue()
    reader = kfd.Reader(kfd.open_events([1], machine.root, machine.ioctl), told.put, 4096)
    yield lambda text: machine.say(1, text), told, reader
    reader.close()


def test_the_thread_tells(reading: tuple[Callable[[str], None], Queue[kfd.Happening], kfd.Reader]) -> None:
    say, told, _ = reading
    say(f"{LINES[0]}\n{LINES[2]}\n")
    assert isinstance(told.get(timeout=10), kfd.Fault) and isinstance(told.get(timeout=10), kfd.Migration)


def test_lines_may_come_in_pieces(reading: tuple[Callable[[str], None], Queue[kfd.Happening], kfd.Reader]) -> None:
    say, told, reader = reading
    text = f"{LINES[0]}\n"
    for start in range(0, len(text), 8):  # what some kernels hand out at a time
        say(text[start : start + 8])
        reader.drain()
    assert told.get(timeout=10) == kfd.parse(LINES[0], 4096) and told.empty()


def test_draining_waits_for_nothing_and_misses_nothing(
    reading: tuple[Callable[[str], None], Queue[kfd.Happening], kfd.Reader],
) -> None:
    say, told, reader = reading
    reader.drain()
    say(f"{LINES[6]}\n")
    reader.drain()
    assert told.get(timeout=10) == kfd.Eviction(81531000000, 0x8F2C)


def test_closing_ends_the_thread_and_closes_the_files(machine: Machine) -> None:
    before = set(os.listdir("/proc/self/fd"))
    reader = kfd.Reader(kfd.open_events([2], machine.root, machine.ioctl), print, 4096)
    reader.close()
    assert not reader._thread.is_alive()
    os.close(machine.ends.pop(2))
    assert set(os.listdir("/proc/self/fd")) == before
    reader.drain()  # nothing left to read


def test_a_file_that_hangs_up_does_not_spin(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    told: Queue[kfd.Happening] = Queue()
    reader = kfd.Reader(kfd.open_events([3], machine.root, machine.ioctl), told.put, 4096)
    machine.say(3, f"{LINES[0]}\n")
    told.get(timeout=10)
    turns: list[int] = []
    monkeypatch.setattr(reader, "drain", lambda: turns.append(1))
    os.close(machine.ends.pop(3))
    threading.Event().wait(0.1)  # time for many thousand turns
    reader.close()
    assert not reader._thread.is_alive() and len(turns) < 10
