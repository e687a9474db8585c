"""What AMD's kernel driver tells of migrations and faults: the event files of /dev/kfd.

`AMDKFD_IOC_SMI_EVENTS` on /dev/kfd gives a file for each GPU; a mask written to it chooses events, which come as lines
of text. A process gets its own events, and needs no more rights than HIP itself does.

The numbers and formats are those of Linux: include/uapi/linux/kfd_ioctl.h (struct kfd_ioctl_smi_events_args, enum
kfd_smi_event, KFD_MIGRATE_TRIGGERS, KFD_EVENT_FMT_*) and drivers/gpu/drm/amd/amdkfd/kfd_smi_events.c, kfd_migrate.c
(addresses and sizes in pages; a node is named by its GPU's id, the host by 0). Times are CLOCK_BOOTTIME nanoseconds.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

_SMI_EVENTS = 0xC0084B1F  # _IOWR('K', 0x1F, struct { __u32 gpuid; __u32 anon_fd; })
MIGRATE_START, MIGRATE_END, FAULT_START, FAULT_END, EVICTION = 5, 6, 7, 8, 9
_WANTED = (MIGRATE_START, MIGRATE_END, FAULT_START, EVICTION)
MASK = sum(1 << (number - 1) for number in _WANTED)
TRIGGERS = ("prefetch", "device fault", "host fault", "eviction")
"""enum KFD_MIGRATE_TRIGGERS, in order."""

_MIGRATE = re.compile(
    r"(?P<ns>\d+) -\d+ @(?P<start>[0-9a-f]+)\((?P<size>[0-9a-f]+)\) (?P<source>[0-9a-f]+)->(?P<to>[0-9a-f]+)"
    r"(?: [0-9a-f]+:[0-9a-f]+)? (?P<trigger>\d+)(?: (?P<error>-?\d+))?"
)
_FAULT = re.compile(r"(?P<ns>\d+) -\d+ @(?P<start>[0-9a-f]+)\((?P<node>[0-9a-f]+)\) (?P<rw>[RW])")
_EVICTION = re.compile(r"(?P<ns>\d+) -\d+ (?P<node>[0-9a-f]+) (?P<trigger>\d+)")


class Migration(NamedTuple):
    """Pages that moved, or were tried to: the driver names a range, of which some may have been there already."""

    began: bool
    """Its begin; else its end."""
    ns: int
    address: int
    nbytes: int
    source: int
    """A GPU's id, 0 for the host."""
    to: int
    trigger: str
    """One of `TRIGGERS`."""
    failed: bool


class Fault(NamedTuple):
    """A GPU touched a page that it could not reach."""

    ns: int
    address: int
    node: int
    write: bool


class Eviction(NamedTuple):
    """A GPU's queues were stopped, so that memory could be moved."""

    ns: int
    node: int


Happening = Migration | Fault | Eviction


def parse(line: str, page: int) -> Happening | None:
    """What a line of the event file says; None for events of no interest, and for what is no such line.

    Parameters
    ----------
    line : str
        ``"6 81529 -411 @7f2400000(200) 0->8f2c 0"``: the event's number in hex, then its own format.
    page : int
        Bytes of the kernel's page.

    Examples
    --------
    >>> parse("6 815290000 -411 @7f2400000(200) 0->8f2c 0", 4096).nbytes
    2097152
    """
    number, _, rest = line.strip().partition(" ")
    try:
        kind = int(number, 16)
    except ValueError:
        return None
    if kind in (MIGRATE_START, MIGRATE_END) and (found := _MIGRATE.fullmatch(rest)):
        trigger = int(found["trigger"])
        return Migration(
            kind == MIGRATE_START,
            int(found["ns"]),
            int(found["start"], 16) * page,
            int(found["size"], 16) * page,
            int(found["source"], 16),
            int(found["to"], 16),
            TRIGGERS[trigger] if trigger < len(TRIGGERS) else "other",
            found["error"] not in (None, "0"),
        )
    if kind == FAULT_START and (found := _FAULT.fullmatch(rest)):
        return Fault(int(found["ns"]), int(found["start"], 16) * page, int(found["node"], 16), found["rw"] == "W")
    if kind == EVICTION and (found := _EVICTION.fullmatch(rest)):
        return Eviction(int(found["ns"]), int(found["node"], 16))
    return None


def open_events(
    gpu_ids: Iterable[int],
    root: Path = Path("/"),
    ioctl: Callable[[int, int, bytearray], object] = fcntl.ioctl,
) -> dict[int, int]:
    """The event files of GPUs, as open descriptors by id, told what is wanted.

    Raises
    ------
    OSError
        /dev/kfd is missing or may not be opened, or the kernel is older than 5.9 and has no such events.
    """
    opened: dict[int, int] = {}
    control = os.open(root / "dev/kfd", os.O_RDWR | os.O_CLOEXEC)
    try:
        for gpu_id in gpu_ids:
            argument = bytearray(struct.pack("II", gpu_id, 0))
            ioctl(control, _SMI_EVENTS, argument)
            opened[gpu_id] = descriptor = struct.unpack("II", argument)[1]
            os.set_inheritable(descriptor, False)
            os.set_blocking(descriptor, False)
            os.write(descriptor, struct.pack("Q", MASK))
    except BaseException:
        for descriptor in opened.values():
            os.close(descriptor)
        raise
    finally:
        os.close(control)
    return opened


class Reader:
    """Reads event files in a thread of its own and hands on what they say.

    Parameters
    ----------
    files : mapping of int to int
        Open descriptors by GPU, as `open_events` gives them; closed by `close`.
    tell : callable
        Called with each happening, in the reader's thread or in one that drains.
    page : int
        Bytes of the kernel's page.

    Notes
    -----
    The kernel keeps 1 KiB of text for each file (8 KiB from 6.12 on) and drops what does not fit without a word: hence
    the thread, which waits in poll. Some kernels hand out 8 bytes a read.
    """

    def __init__(self, files: Mapping[int, int], tell: Callable[[Happening], None], page: int) -> None:
        self._files, self._tell, self._page = dict(files), tell, page
        self._text = dict.fromkeys(self._files, b"")
        self._lock = threading.Lock()
        self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="umarray-kfd", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Read all that is there now."""
        with self._lock:
            for gpu_id, descriptor in self._files.items():
                self._read(gpu_id, descriptor)

    def close(self) -> None:
        """End the thread, and close the files."""
        os.write(self._wake[1], b"x")
        self._thread.join()
        with self._lock:
            for descriptor in (*self._files.values(), *self._wake):
                os.close(descriptor)
            self._files = {}

    def _run(self) -> None:
        waiting = select.poll()
        for descriptor in (*self._files.values(), self._wake[0]):
            waiting.register(descriptor, select.POLLIN)
        while True:
            ready = waiting.poll()
            if any(descriptor == self._wake[0] for descriptor, _ in ready):
                return
            for descriptor, what in ready:
                if not what & select.POLLIN:  # hung up: nothing will come any more
                    waiting.unregister(descriptor)
            self.drain()

    def _read(self, gpu_id: int, descriptor: int) -> None:
        text = self._text[gpu_id]
        while True:
            try:
                got = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            if not got:
                break
            text += got
        *lines, self._text[gpu_id] = text.split(b"\n")
        for line in lines:
            happening = parse(line.decode("ascii", "replace"), self._page)
            if happening is not None:
                self._tell(happening)
