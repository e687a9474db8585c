import pickle
from typing import Any

import pytest

from umarray.places import HOST, Device, as_place


class _Index:
    def __index__(self) -> int:
        return 3


def _cupy_device(number: int) -> Any:
    """What `cupy.cuda.Device` looks like from outside, with no CuPy."""
    kind = type("Device", (), {"__module__": "cupy.cuda.device", "id": number})
    return kind()


@pytest.mark.parametrize(
    ("written", "place"),
    [
        (HOST, HOST),
        ("host", HOST),
        (0, Device(0)),
        (Device(2), Device(2)),
        (_Index(), Device(3)),
        (_cupy_device(1), Device(1)),
    ],
)
def test_what_a_caller_may_write(written: Any, place: Any) -> None:
    assert as_place(written) == place


@pytest.mark.parametrize("bad", ["cpu", "", "gpu", -1, "0"])
def test_unknown_places_are_value_errors_that_quote_the_value(bad: Any) -> None:
    with pytest.raises(ValueError, match=repr(bad)):
        as_place(bad)


@pytest.mark.parametrize("bad", [True, 1.0, None, [0], object()])
def test_other_types_are_type_errors(bad: Any) -> None:
    with pytest.raises(TypeError):
        as_place(bad)


def test_device_takes_only_an_index() -> None:
    for bad in (True, 0.0, "0", None):
        with pytest.raises(TypeError, match="must be an int"):
            Device(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="HOST"):
        Device(-1)


def test_places_are_values() -> None:
    assert Device(1) == Device(1) and Device(0) < Device(1) and len({Device(0), Device(0), HOST, HOST}) == 2
    assert pickle.loads(pickle.dumps(HOST)) is HOST
    assert pickle.loads(pickle.dumps(Device(4))) == Device(4)
    assert repr(HOST) == "HOST" and repr(Device(4)) == "Device(4)"
