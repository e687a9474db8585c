"""What arrays are called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from umarray.drivers import get_driver
from umarray.observe.names import assigned, look
from umarray.residency.spans import layout_of

xp: Any = get_driver().xp
AT_MODULE_LEVEL = xp.zeros(7, "u1")


class Model:
    def __init__(self) -> None:
        self.weights = xp.zeros((2, 3))

    @property
    def costly(self) -> Any:
        raise AssertionError("code of the user's was run")


def names(frame: Any) -> dict[str, tuple[int, ...]]:
    return {one.name: one.shape for one in look(frame)}


def test_locals_callers_and_globals() -> None:
    def inner() -> dict[str, tuple[int, ...]]:
        nearest = xp.zeros(3)
        assert nearest.size == 3
        return names(sys._getframe())

    outer = xp.zeros(5)
    found = inner()
    assert outer.size == 5
    assert (found["nearest"], found["outer"], found["AT_MODULE_LEVEL"]) == ((3,), (5,), (7,))


def test_containers_and_attributes_one_level_deep() -> None:
    layers = [xp.zeros(2), {"too deep": xp.zeros(9)}]
    params = {"w": xp.zeros(4), 3: xp.zeros(6)}
    model = Model()
    found = names(sys._getframe())
    assert found["layers[0]"] == (2,) and found["params['w']"] == (4,) and found["params[3]"] == (6,)
    assert found["model.weights"] == (2, 3)
    assert len(layers) == 2 and params and model and not any("too deep" in name for name in found)


def test_where_it_lies_and_the_innermost_name_of_the_same() -> None:
    x = xp.zeros((4, 5), "f4")
    alias = x
    (one,) = [one for one in look(sys._getframe()) if one.shape == (4, 5)]
    assert (one.name, one.address, one.nbytes, one.dtype) == ("x", layout_of(x).address, 80, "float32")
    assert alias is x


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x = um.zeros(3)", "x"),
        ("    self.weights = um.empty(", "self.weights"),
        ("table: Array = um.empty((3, 4))", "table"),
        ("return um.zeros(3)", ""),
        ("a, b = make()", ""),
        ("d['k'] = um.zeros(3)", ""),
        ("f(x=3)", ""),
        ("", ""),
    ],
)
def test_the_name_that_a_line_gives(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"# first\n{text}\n")
    assert assigned(f"{path}:2") == name


def test_a_line_that_cannot_be_read_names_none() -> None:
    assert assigned("In[3], line 2") == assigned("/no/such/file.py:1") == assigned("") == ""
