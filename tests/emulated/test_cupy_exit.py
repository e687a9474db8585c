"""Whatever of CuPy's is alive at exit, and forked children; each in a process of its own on the emulated device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import os, sys, gc, threading
import cupy
import umarray as um
pool = um.ManagedMemoryPool("4MiB"{more})
pool.__enter__()
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    x = cupy.empty(1000)
    x.data.memset_async(0, x.nbytes, stream)
view = x[::-2]
epoch = pool.epoch("open"{how})
epoch.__enter__()
y = cupy.empty(10)
um.record_use(x, stream)
with pool.plain():
    plain = cupy.empty(100)
{body}
"""

BODIES = [
    "",
    "del pool",
    "del x, view, y, plain, pool, epoch",
    "pool.close()",
    "del stream",
    "sys.keeping = (view, pool, stream); del x, view, pool, epoch, stream",
    "knot = [pool, x]; knot.append(knot); del pool, x, knot",
    "thread = threading.Thread(target=lambda: globals().update(z=pool.malloc(100))); thread.start(); thread.join()",
    "del x; del pool; del view, y; gc.collect(); um.empty(10)",
    "cupy.cuda.Stream.null.use(); raise SystemExit(0)",
]


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "faulthandler", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.parametrize("body", BODIES)
def test_alive_at_exit(body: str) -> None:
    run(PROGRAM.format(body=body, more="", how=""))


def test_alive_at_exit_while_tracked() -> None:
    run(PROGRAM.format(body="del pool", more=", track=True", how=', on_escape="warn"'))


def test_an_installed_pool_at_exit() -> None:
    run("import cupy, umarray as um\npool = um.install('4MiB')\nx = cupy.empty(10)\nview = x[1:]\ndel x\n")


def test_a_forked_child_is_told_and_its_parents_memory_is_left_alone() -> None:
    run(
        PROGRAM.format(
            more="",
            how="",
            body="""
from umarray import hipemu
live = hipemu.live_allocations()
child = os.fork()
if child == 0:
    code = 1
    try:
        um.zeros(1 << 20)
    except um.ForkedProcess as error:
        code = 0 if "spawn" in str(error) else 2
    del x, view, y, pool
    gc.collect()
    os._exit(code)
assert os.waitpid(child, 0)[1] == 0
assert hipemu.live_allocations() == live
assert (view.get() == 0).all()
""",
        )
    )


CHILD = """
import os, sys
import cupy
import umarray as um
from umarray.errors import ForkedProcess
pool = um.install("4MiB")
y = cupy.empty(3)
with um.ManagedMemoryPool("4MiB"):
    um.empty(3)
    del y
    if (child := os.fork()) == 0:
        refused = 0
        for make in (um.empty, um.zeros, cupy.empty, cupy.zeros, lambda n: um.asarray([0.0] * n), pool.malloc):
            try:
                make(3)
            except ForkedProcess as error:
                refused += "spawn" in str(error)
        os._exit(refused)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == {refused}, status
cupy.zeros(3).sum()
um.uninstall()
"""


def test_a_forked_child_is_given_nothing_of_what_the_pools_hold_free() -> None:
    run(CHILD.replace("{refused}", "5"))
