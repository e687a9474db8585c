"""What is found in a notebook, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.observe.shells import Notebook, a_notebook
from umarray.observe import alive
from umarray.observe.alive import ERROR, HISTORY, NAME, Found, alive_in


@pytest.fixture
def notebook(capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    with a_notebook(capsys) as notebook:
        notebook.run("import umarray as um, numpy as np, functools, types")
        yield notebook


def names(found: Found, by: str) -> dict[str, int]:
    return {one.name: one.nbytes for one in found.by(by)}


def test_names_history_and_error_each_in_its_place(notebook: Notebook) -> None:
    notebook.run("x = um.zeros(100)")
    notebook.run("um.zeros(200)")
    notebook.run("def f():\n    y = um.zeros(300)\n    g(y[10:])\ndef g(z):\n    raise ValueError(um.zeros(400))\nf()")
    found = alive_in(notebook.shell)
    assert found.whole
    assert names(found, NAME) == {"x": 1024}
    assert names(found, HISTORY) == {"Out[4]": 2048}
    assert names(found, ERROR) == {"y in f, In[5], line 3": 2560, "the last ValueError itself": 3584}
    assert [one.nbytes for one in found.arrays] == sorted((one.nbytes for one in found.arrays), reverse=True)


def test_what_has_a_name_is_not_the_historys(notebook: Notebook) -> None:
    notebook.run("x = um.zeros(100); x")
    notebook.run("y = Out[3][5:] if 3 in Out else None")
    notebook.run("del x")
    found = alive_in(notebook.shell)
    assert not found.by(HISTORY) and len(found.by(NAME)) == 1


@pytest.mark.parametrize(
    "cell",
    [
        "held = [um.zeros(100)]",
        "held = {'a': ({'b': um.zeros(100)},)}",
        "held = types.SimpleNamespace(inner=um.zeros(100))",
        "held = um.zeros(100)[3:].reshape(97, 1).T",
        "held = functools.partial(print, um.zeros(100))",
        "held = (lambda x: lambda: x)(um.zeros(100))",
        "def held(x=um.zeros(100)): pass",
        "class C:\n    __slots__ = 'x'\n    def f(self): pass\nc = C(); c.x = um.zeros(100); held = c.f; del c",
        "held = (x for x in [um.zeros(100)])",
        "def g():\n    x = um.zeros(100)\n    yield x.shape\nheld = g(); shape = next(held)",
        "held = np.empty(1, object); held[0] = um.zeros(100)",
        "held = um.zeros(100).view(np.recarray)",
    ],
)
def test_an_array_is_found_wherever_it_is_kept(notebook: Notebook, cell: str) -> None:
    notebook.run(cell)
    assert notebook.error is None
    assert names(alive_in(notebook.shell), NAME) == {"held": 1024}


def test_a_function_leads_to_no_other_names(notebook: Notebook) -> None:
    notebook.run("def f(): return 1")
    notebook.run("x = um.zeros(100)")
    notebook.run("um.zeros(200)")
    notebook.run("a_shell, a_module, every_name, outputs = get_ipython(), um, globals(), Out")
    found = alive_in(notebook.shell)
    assert names(found, NAME) == {"x": 1024} and names(found, HISTORY) == {"Out[5]": 2048}


def test_views_of_one_block_count_once_and_arrays_of_others_do_not(notebook: Notebook) -> None:
    notebook.run("x = um.zeros(1000); y, z = x[:10], x[500:]; plain = np.zeros(50); empty = um.zeros(0)")
    assert names(alive_in(notebook.shell), NAME) == {"x": 8192}


def test_a_tracked_pools_blocks_are_known_too(notebook: Notebook) -> None:
    notebook.run("pool = um.pool('1MiB', track=True)\nwith pool: x = um.zeros(1000)[1:2]")
    assert names(alive_in(notebook.shell), NAME) == {"x": 8192}


def test_a_name_of_the_users_own_that_looks_like_history_is_a_name(notebook: Notebook) -> None:
    notebook.run("_ = um.zeros(100)")
    notebook.run("_99 = um.zeros(200)")
    assert names(alive_in(notebook.shell), NAME) == {"_": 1024, "_99": 2048}


def test_causes_and_groups_of_errors_are_searched(notebook: Notebook) -> None:
    notebook.run(
        "def f():\n    x = um.zeros(100)\n    1 / 0\n"
        "def g():\n    y = um.zeros(200)\n    try: f()\n    except ZeroDivisionError as e: raise OSError from e\n"
        "g()"
    )
    assert set(names(alive_in(notebook.shell), ERROR).values()) == {1024, 2048}


def test_a_search_says_when_it_gave_up(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.run("many = [[i] for i in range(2000)]")
    monkeypatch.setattr(alive, "MOST_OBJECTS", 1000)
    assert not alive_in(notebook.shell).whole


def test_nothing_is_kept_by_what_was_found(notebook: Notebook) -> None:
    notebook.run("pool = um.install('1MiB'); x = um.zeros(1000)")
    found = alive_in(notebook.shell)
    notebook.run("del x")
    assert found.arrays and notebook.value("pool").statistics().current_bytes == 0
