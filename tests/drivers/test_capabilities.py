"""capabilities() says the mode, the reasons and what is loaded, as a frozen value, as JSON and as a report."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray import drivers
from umarray.drivers.capabilities import capabilities
from umarray.drivers.host import HostDriver


@pytest.fixture
def host() -> Any:
    before = drivers.set_driver(HostDriver(("CuPy is not installed",)))
    yield
    drivers.set_driver(before)


def test_of_the_host(host: None) -> None:
    found = capabilities()
    assert (found.mode, found.driver, found.devices) == ("host", "host", ())
    assert found.reasons == ("CuPy is not installed",)
    assert {"umarray", "python", "numpy"} <= set(found.versions)
    assert "CuPy is not installed" in str(found)


def test_of_devices(make_fake: Any) -> None:
    make_fake(devices=2)
    found = capabilities()
    assert (found.mode, len(found.devices)) == ("managed", 2)
    assert "device 0" in str(found) and "device 1" in str(found) and "prefetch: yes" in str(found)


def test_it_is_frozen(fake: FakeDriver) -> None:
    found = capabilities()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.mode = "host"  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.versions["numpy"] = "0"  # type: ignore[index]


def test_as_dict_is_plain_enough_for_json(fake: FakeDriver) -> None:
    plain = capabilities().as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["devices"][0]["device"] == 0 and plain["mode"] == "managed"
    assert set(plain) == {field.name for field in dataclasses.fields(capabilities())}


def test_settings_that_are_set_are_told(fake: FakeDriver, monkeypatch: Any) -> None:
    monkeypatch.setenv("HSA_XNACK", "1")
    monkeypatch.delenv("UMARRAY_ARENA", raising=False)
    found = capabilities()
    assert found.environment["HSA_XNACK"] == "1" and "UMARRAY_ARENA" not in found.environment


def test_several_wheels_are_told(fake: FakeDriver, monkeypatch: Any) -> None:
    wheels = ("cupy-cuda12x 13.3.0", "cupy-rocm-5-0 13.3.0")
    monkeypatch.setattr("umarray.drivers.capabilities.cupy_wheels", lambda: wheels)
    assert "keep one of cupy-cuda12x" in capabilities().advice[-1]
