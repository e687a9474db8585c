"""Whatever is alive at exit, in any order: exit code 0 and nothing on stderr."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import os
os.environ["UMARRAY_MODE"] = "host"
import umarray as um
pool = um.pool("1MiB", track=True)
pool.__enter__()
x = um.zeros(1000)
view = x[::-2]
epoch = pool.epoch("open")
epoch.__enter__()
um.record_use(x, 0)
installed = None
{body}
"""
THINGS = ["pool", "x", "view", "epoch"]


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_dying_in_every_order() -> None:
    orders = "\n".join(
        f"""
def run_{index}():
    pool = um.pool("1MiB"); x = um.zeros(1000, pool=pool); x += 7; view = x[::-2]; exported = memoryview(x)
    things = dict(pool=pool, x=x, view=view, epoch=exported)
    del pool, x, view, exported
    for name in {order!r}:
        if "view" in things: assert (things["view"] == 7).all()
        del things[name]
run_{index}()
"""
        for index, order in enumerate(itertools.permutations(THINGS))
    )
    run(PROGRAM.format(body=orders + "\nfrom umarray.memory import lingering\nassert lingering.sweep() == 0"))


@pytest.mark.parametrize(
    "body",
    [
        "",
        "del pool",
        "pool.close()",
        "installed = um.install('1MiB'); y = um.zeros(3)",
        "import sys; sys.keeping = (view, pool); del x, view, pool, epoch",
        "import threading; threading.Thread(target=lambda: globals().update(z=um.zeros(3, pool=pool))).start()",
        "raise SystemExit(0)",
    ],
)
def test_alive_at_exit(body: str) -> None:
    run(PROGRAM.format(body=body))


def test_a_forked_child_that_touches_no_device_works() -> None:
    run(
        PROGRAM.format(
            body="""
child = os.fork()
if child == 0:
    assert (x == 0).all()
    y = um.zeros(10, pool=pool)
    y += 1
    os._exit(0 if y.sum() == 10 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
        )
    )
