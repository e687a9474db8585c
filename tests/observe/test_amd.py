"""AMD's source on a tree that was written from the documentation, its event files being pipes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers import amd_trees
from tests.fake_driver import FakeDriver
from umarray import events
from umarray.drivers import kfd
from umarray.observe.amd import Amd
from umarray.observe.counters import Counts
from umarray.places import HOST, Device

FIRST, SECOND = 36652, 50237


class Machine:
    def __init__(self, root: Path) -> None:
        self.root = amd_trees.mi210(root)
        (root / "dev").mkdir()
        (root / "dev/kfd").touch()
        self.ends: dict[int, int] = {}
        self.opened = 0

    def open_events(self, gpus: Any, root: Path) -> dict[int, int]:
        assert root == self.root
        self.opened += 1
        pipes = {gpu: os.pipe2(os.O_NONBLOCK) for gpu in gpus}
        self.ends = {gpu: pipe[1] for gpu, pipe in pipes.items()}
        return {gpu: pipe[0] for gpu, pipe in pipes.items()}

    def say(self, *lines: str, gpu: int = FIRST, late: int = 0) -> None:
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        text = "".join(f"{line.format(t=now + late + index)}\n" for index, line in enumerate(lines))
        os.write(self.ends[gpu], text.encode())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    monkeypatch.setattr(kfd, "open_events", machine.open_events)
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    yield machine
    for descriptor in machine.ends.values():
        os.close(descriptor)


@pytest.fixture
def source(fake: FakeDriver, machine: Machine) -> Amd:
    return Amd(fake, machine.root)


def test_a_fault_and_what_it_moves(machine: Machine, source: Amd) -> None:
    session = source.begin()
    machine.say(
        "7 {t} -1 @100(8f2c) W",
        "5 {t} -1 @100(200) 0->8f2c 0:0 1",
        "6 {t} -1 @100(200) 0->8f2c 1 0",
        "9 {t} -1 8f2c 0",
    )
    session.end()
    page = os.sysconf("SC_PAGE_SIZE")
    fault, moved = session.take().records
    assert isinstance(fault, events.Faulted) and isinstance(moved, events.Migrated)
    assert (fault.address, fault.place, fault.count, fault.write) == (0x100 * page, Device(0), 1, True)
    assert (moved.address, moved.nbytes, moved.cause) == (0x100 * page, 0x200 * page, "fault")
    assert (moved.source, moved.to) == (HOST, Device(0)) and moved.start < moved.end
    assert abs(moved.start - time.perf_counter()) < 60
    assert session.counts() == Counts(
        device_faults=1,
        host_faults=0,
        bytes_to_device=0x200 * page,
        bytes_to_host=0,
        bytes_between_devices=0,
        prefetched_bytes=0,
        evicted_bytes=0,
        queue_evictions=1,
    )


def test_the_host_faults_by_migrations_that_it_triggered(machine: Machine, source: Amd) -> None:
    session = source.begin()
    machine.say("6 {t} -1 @100(10) 8f2c->0 2", "6 {t} -1 @110(10) 8f2c->0 3", "6 {t} -1 @120(10) 8f2c->c43d 0")
    session.end()
    records, counts, page = session.take().records, session.counts(), os.sysconf("SC_PAGE_SIZE")
    assert [type(one).__name__ for one in records] == ["Faulted", "Migrated", "Migrated", "Migrated"]
    assert (records[0].place, records[3].to) == (HOST, Device(1))  # type: ignore[attr-defined]
    assert (counts.host_faults, counts.bytes_to_host, counts.evicted_bytes) == (1, 32 * page, 16 * page)
    assert (counts.bytes_between_devices, counts.prefetched_bytes) == (16 * page, 16 * page)


def test_a_migration_that_failed_moved_nothing(machine: Machine, source: Amd) -> None:
    session = source.begin()
    machine.say("6 {t} -1 @100(10) 0->8f2c 0 -12")
    session.end()
    assert session.take().records == () and session.counts().bytes_to_device == 0


def test_sessions_nest_and_the_last_one_closes_the_files(machine: Machine, source: Amd) -> None:
    outer = source.begin()
    machine.say("7 {t} -1 @100(8f2c) R")
    inner = source.begin()
    machine.say("7 {t} -1 @100(c43d) R", gpu=SECOND)
    inner.end()
    machine.say("7 {t} -1 @101(8f2c) R")
    outer.end()
    found = [session.take().records for session in (outer, inner)]
    assert [len(records) for records in found] == [3, 1] and machine.opened == 1
    assert found[1][0].place == Device(1)  # type: ignore[attr-defined]
    with pytest.raises(BrokenPipeError):
        machine.say("7 {t} -1 @101(8f2c) R")
    for descriptor in machine.ends.values():
        os.close(descriptor)
    session = source.begin()
    machine.say("7 {t} -1 @102(8f2c) R")
    session.end()
    assert len(session.take().records) == 1 and machine.opened == 2


def test_it_can_be_asked_while_it_goes_on(machine: Machine, source: Amd) -> None:
    session = source.begin()
    machine.say("7 {t} -1 @100(8f2c) R")
    assert len(session.take().records) == 1 and session.take().records == ()
    session.end()


def test_hidden_gpus_have_no_number(fake: FakeDriver, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    source = Amd(fake, machine.root)
    assert (source.place(SECOND), source.place(0)) == (Device(0), HOST)
    assert source.place(FIRST) == source.place(FIRST) == Device(1)


def test_without_a_kfd_it_is_no_source(fake: FakeDriver, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="names no GPU"):
        Amd(fake, tmp_path)
    amd_trees.mi210(tmp_path)
    with pytest.raises(FileNotFoundError):
        Amd(fake, tmp_path)
