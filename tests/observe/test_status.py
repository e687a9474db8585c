"""What %umarray shows, as values, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.observe.shells import Notebook, a_notebook
from tests.test_html import Checked
from umarray.observe.status import SHOWN, status_of


@pytest.fixture
def notebook(capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    with a_notebook(capsys) as notebook:
        notebook.run("import umarray as um")
        yield notebook


def test_without_a_pool(notebook: Notebook) -> None:
    status = status_of(notebook.shell)
    assert (status.mode, status.place, status.pool) == ("host", "the host", None)
    assert 0 < status.free_bytes <= status.total_bytes
    assert "%umarray on 8GiB" in str(status) and "forget" not in str(status)


def test_the_pool_of_the_thread_comes_first(notebook: Notebook) -> None:
    notebook.run("um.install('1MiB'); pool = um.pool('2MiB').__enter__(); x = um.zeros(1000)")
    status = status_of(notebook.shell)
    assert status.pool is not None and status.pool.arena_bytes == 2 << 20
    notebook.run("pool.__exit__(None, None, None)")


def test_what_no_name_leads_to_is_told(notebook: Notebook) -> None:
    notebook.run("pool = um.install('1MiB')")
    hidden = notebook.value("um").zeros(1000)
    assert "8.0 KiB, in objects that no name here leads to" in str(status_of(notebook.shell))
    del hidden
    assert "in objects that" not in str(status_of(notebook.shell))


def test_escapes_are_summed_up(notebook: Notebook) -> None:
    notebook.run("pool = um.install('1MiB', track=True)\nwith pool.epoch(): x = um.zeros(1000); y = um.zeros(1)")
    assert "escaped                     2 arrays, 8.5 KiB" in str(status_of(notebook.shell))


def test_many_arrays_are_cut_to_the_largest(notebook: Notebook) -> None:
    notebook.run(f"um.install('1MiB')\nfor i in range({SHOWN + 3}): globals()[f'x{{i}}'] = um.zeros(64 * (i + 1))")
    text = str(status_of(notebook.shell))
    assert f"x{SHOWN + 2}  " in text and "x0  " not in text and "and 3 smaller ones" in text


def test_the_html_says_the_same_escaped(notebook: Notebook) -> None:
    notebook.run("um.install('1MiB'); x = um.zeros((10, 20), 'f4')")
    notebook.run("um.zeros(5)")
    status = status_of(notebook.shell)
    cells = Checked(status._repr_html_()).cells
    assert cells[-10:] == [
        "x", "10 x 20 float32", "1.0 KiB", "host", "a name",
        "Out[4]", "5 float64", "512 B", "host", "the output history",
    ]  # fmt: skip
    assert "forget" in status._repr_html_()
