"""A fork is noticed in the child, and only there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from umarray.drivers import fork
from umarray.errors import ForkedProcess

SCRIPT = """
import os
from tests.fake_cupy import H200, fake_cupy
from tests.fake_driver import FakeDriver
from umarray.drivers import fork, probe
from umarray.drivers.base import Kind, Mode
from umarray.drivers.gpu import GpuDriver
from umarray.drivers.host import HostDriver
from umarray.errors import ForkedProcess

born = fork.generation()
gpu = GpuDriver(fake_cupy(H200), Mode.MANAGED, (), (probe.read_facts("cuda", 0, H200),))
able = [gpu, FakeDriver()]
blocks = [driver.allocate(4096, Kind.MANAGED) for driver in able]
host = HostDriver()
child = os.fork()
if child == 0:
    refused = 0
    for driver, block in zip(able, blocks):
        driver.free(block)
        try:
            driver.allocate(4096, Kind.MANAGED)
        except ForkedProcess:
            refused += 1
    host.free(host.allocate(4096, Kind.MANAGED))
    os._exit(10 + refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
fork.check(born)
for driver, block in zip(able, blocks):
    driver.free(block)
"""


def test_the_child_is_refused_and_the_parent_goes_on(repository: object) -> None:
    child = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT],
        cwd=str(repository),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (child.returncode, child.stderr) == (0, "")


def test_the_error_names_the_process_and_the_remedy() -> None:
    with pytest.raises(ForkedProcess, match=r"process \d+ was forked.*spawn"):
        fork.check(fork.generation() - 1)
