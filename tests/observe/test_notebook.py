"""The magics, in a shell within this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import umarray as um
from tests.observe.shells import Notebook, a_notebook
from umarray.memory import installed


@pytest.fixture
def notebook(capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    with a_notebook(capsys) as notebook:
        yield notebook


def test_a_pool_for_the_session_and_off_again(notebook: Notebook) -> None:
    assert installed() is None
    assert "host pool on: 1.0 MiB" in notebook.run("%umarray on 1MiB")
    pool = installed()
    assert pool is not None and not pool.tracking
    notebook.run("import umarray as um; x = um.zeros(1000)")
    assert pool.statistics().current_bytes == 8192
    assert notebook.run("%umarray off") == "pool off; 8.0 KiB are in use still and stay valid\n"
    assert installed() is None and pool.closed
    assert notebook.run("%umarray off") == "no pool was on\n"


def test_on_with_nothing_more_takes_the_defaults_and_track_counts_escapes(notebook: Notebook) -> None:
    notebook.run("%umarray on track")
    pool = installed()
    assert pool is not None and pool.tracking
    assert "escapes are counted" in notebook.run("%umarray on track")
    assert installed() is pool  # the same arguments, the same pool


@pytest.mark.parametrize("size", ["8 MiB", "50%", "8000000"])
def test_sizes_as_people_write_them(notebook: Notebook, size: str) -> None:
    assert "pool on" in notebook.run(f"%umarray on {size}")
    assert notebook.error is None and installed() is not None


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("%umarray on 8GB please", "'8GB please'"),
        ("%umarray on 8 GiB 4", "'8 GiB 4'"),
        ("%umarray on -1", "'-1'"),
        ("%umarray on 101%", "'101%'"),
        ("%umarray on 9EiB", "'EiB'"),
        ("%umarray on 900TiB", "'900TiB'"),
        ("%umarray of", "'of'"),
        ("%umarray off now", "'off now'"),
        ("%umarray forget it", "'forget it'"),
        ("%umarray show me", "'show me'"),
        ("%%umwatch please\n1", "'please'"),
    ],
)
def test_bad_input_is_one_clear_line_and_changes_nothing(notebook: Notebook, line: str, quoted: str) -> None:
    told = notebook.run(line)
    assert told.startswith("UsageError: ") and told.count("\n") == 1 and quoted in told
    assert "arena_bytes" not in told or quoted == "'900TiB'"  # no name that was not written
    assert notebook.error is not None  # so "run all cells" stops here
    assert installed() is None


def test_another_pool_is_refused_while_one_is_on(notebook: Notebook) -> None:
    notebook.run("%umarray on 1MiB")
    pool = installed()
    told = notebook.run("%umarray on 2MiB")
    assert told.startswith("UsageError: ") and "%umarray off" in told and told.count("\n") == 1
    assert installed() is pool


def test_what_is_shown_says_mode_pool_budget_and_what_is_alive(notebook: Notebook) -> None:
    shown = notebook.run("%umarray")
    assert "host mode" in shown and "a test wants it" in shown and "none is on" in shown and " are free" in shown
    notebook.run("%umarray on 1MiB\nimport umarray as um; x = um.zeros(1000)")
    shown = notebook.run("%umarray")
    assert "host memory, 8.0 KiB alive in 1 arena, 1.0 MiB" in shown and "the pool may reach" in shown
    assert "x  1000 float64  8.0 KiB  (a name)" in shown
    assert "object at 0x" not in shown and "Status(" not in shown


def test_forgetting_frees_what_only_history_and_error_keep(notebook: Notebook) -> None:
    notebook.run("%umarray on 1MiB\nimport umarray as um")
    pool = installed()
    assert pool is not None
    notebook.run("um.zeros(1000)")
    notebook.run("def f():\n    y = um.zeros(2000)\n    1 / 0\nf()")
    notebook.run("named = um.zeros(64)")
    shown = notebook.run("%umarray")
    assert "Out[3]  1000 float64" in shown and "y in f, In[4], line 3  2000 float64" in shown
    assert pool.statistics().current_bytes == 8192 + 16384 + 512
    assert notebook.run("%umarray forget").endswith("2 arrays, 24.0 KiB, were kept by nothing else\n")
    assert pool.statistics().current_bytes == 512
    assert notebook.run("%umarray forget").endswith("no array was kept by nothing else\n")
    assert notebook.run("3 + 4") == "Out[9]: 7\n" and notebook.run("_") == "Out[10]: 7\n"  # the history goes on


def test_unloading_takes_the_magics_away_and_leaves_the_pool(notebook: Notebook) -> None:
    notebook.run("%umarray on 1MiB")
    notebook.run("%unload_ext umarray")
    assert installed() is not None
    assert "not found" in notebook.run("%umarray")
    notebook.run("%load_ext umarray")
    assert "alive in" in notebook.run("%umarray")


def test_the_extension_can_be_reloaded(notebook: Notebook) -> None:
    notebook.run("%reload_ext umarray")
    assert notebook.error is None and um.Device(0) == um.Device(0)
    assert "host mode" in notebook.run("%umarray")


def test_importing_umarray_does_not_import_ipython(repository: object) -> None:
    import subprocess
    import sys

    code = "import umarray, sys; hasattr(umarray, 'x'); assert 'IPython' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# %%umwatch


def test_a_watched_cell_is_run_in_the_notebook_and_told_of(notebook: Notebook) -> None:
    told = notebook.run("%%umwatch\nimport umarray as um\nx = um.zeros(1000)\ny = 3")
    assert notebook.error is None and notebook.value("y") == 3
    assert "allocated" in told and "1 blocks, 8.0 KiB" in told and "object at 0x" not in told


def test_the_last_value_is_the_cells_after_what_was_told(notebook: Notebook) -> None:
    told = notebook.run("%%umwatch\n'a' + 'b'")
    assert told.endswith("Out[2]: 'ab'\n") and told.index("seconds") < told.index("Out[2]")
    assert notebook.run("_") == "Out[3]: 'ab'\n"
    assert "Out[" not in notebook.run("%%umwatch\n'a' + 'b';")
    assert "seconds" in notebook.run("%%umwatch\n# nothing at all")


def test_an_error_of_the_cell_is_its_own_and_what_moved_is_told(notebook: Notebook) -> None:
    told = notebook.run("%%umwatch\nz = 1\ndef f():\n    return 1 / 0\nf()")
    assert isinstance(notebook.error, ZeroDivisionError) and notebook.value("z") == 1
    assert "seconds" in told and "return 1 / 0" in told and "Cell In[2], line 4, in f()" in told
    assert "notebook.py" not in told  # no frame of ours in the traceback


def test_magics_work_in_a_watched_cell(notebook: Notebook) -> None:
    told = notebook.run("%%umwatch\n%umarray on 1MiB\nz = !echo four")
    assert "pool on" in told and notebook.value("z") == ["four"]


def test_a_cell_that_is_no_python_runs_nothing(notebook: Notebook) -> None:
    told = notebook.run("%%umwatch\nz = 1\nthis is no python")
    assert isinstance(notebook.error, SyntaxError) and "z" not in notebook.shell.user_ns and "seconds" not in told
