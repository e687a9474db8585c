"""The notebook's magics and the map of arenas on the emulated device, in a shell within this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import umarray as um
from tests.observe.shells import Notebook, a_notebook
from umarray.memory.arena_map import arena_maps
from umarray.observe.alive import HISTORY, NAME, alive_in
from umarray.observe.status import status_of


@pytest.fixture
def notebook(capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    with a_notebook(capsys, on_host=False) as notebook:
        notebook.run("import umarray as um, numpy as np")
        yield notebook


def test_arrays_of_the_device_are_found_by_their_blocks(notebook: Notebook) -> None:
    notebook.run("%umarray on 8MiB track")
    notebook.run("x = um.zeros((100, 10), 'f4'); view = x[5:]; z = um.xp.ones(300)")
    notebook.run("um.xp.ones(500)")
    found = alive_in(notebook.shell)
    assert {(one.name, one.nbytes, one.memory) for one in found.by(NAME)} == {
        ("x", 4096, "managed"),
        ("z", 2560, "managed"),
    }
    assert [one.nbytes for one in found.by(HISTORY)] == [4096]
    status = status_of(notebook.shell)
    assert status.mode == "managed" and status.pool is not None and "something else" not in str(status)
    assert "were kept by nothing else" in notebook.run("%umarray forget")
    assert status_of(notebook.shell).pool.current_bytes == 6656  # type: ignore[union-attr]


def test_arrays_of_cupys_own_pool_are_found_too(notebook: Notebook) -> None:
    notebook.run("x = um.xp.ones(1000)")
    assert [(one.name, one.memory) for one in alive_in(notebook.shell).by(NAME)] == [("x", "device")]


def test_a_watched_cell_tells_what_moved_and_the_remedy(notebook: Notebook) -> None:
    notebook.run("%umarray on 64MiB")
    notebook.run("x = um.zeros((1024, 1024), 'f4', page_aligned=True)\nwith um.host_view(x, 'w') as h: h[...] = 1")
    notebook.run("um.move(x, to=um.HOST); um.xp.cuda.Device().synchronize()")
    told = notebook.run("%%umwatch\ntotal = float(x.sum())")
    assert notebook.value("total") == 1024 * 1024
    assert "to devices 4.0 MiB" in told and "the emulated device (exact)" in told
    assert "um.prefetch(x)" in told
    notebook.run("um.move(x, to=um.HOST); um.xp.cuda.Device().synchronize()")
    told = notebook.run("%%umwatch\nwith um.prefetch(x):\n    total = float(x.sum())")
    assert "to devices 4.0 MiB" in told and "on-demand" not in told


def test_a_map_of_a_pool_that_carves_ahead() -> None:
    with um.pool("8MiB", track=True) as pool:
        with pool.persistent():
            weights = um.zeros(1000, "u1")
        with pool.epoch():
            escaped = um.zeros(5000, "u1")
        alive = um.xp.zeros(10_000, "u1")
        (one,) = arena_maps(pool)
    assert one.nbytes_of("persistent") == 1024 and one.nbytes_of("escaped") == 5120 and one.nbytes_of("alive") == 10240
    assert one.nbytes_of("carved") > 0
    assert sum(run.nbytes for run in one.runs) == one.nbytes == 8 << 20
    del weights, escaped, alive
