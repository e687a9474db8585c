"""Which transport, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.drivers.host import HostDriver
from umarray.errors import NotSupported
from umarray.pipeline.choose import KNOWN, LATER, choose


def driver(mode: str) -> Any:
    return HostDriver() if mode == "host" else FakeDriver(mode)


@pytest.mark.parametrize(
    ("mode", "works", "auto"),
    [
        ("host", {"host"}, "host"),
        ("explicit", {"staged"}, "staged"),
        ("managed", {"staged", "managed"}, "staged"),
    ],
)
def test_a_mode_has_its_transports(mode: str, works: set[str], auto: str) -> None:
    name, reason = choose("auto", driver(mode))
    assert name == auto and len(reason) > 20
    for name in set(KNOWN) - {"auto"}:
        if name in works:
            assert choose(name, driver(mode)) == (name, "asked for")
        else:
            with pytest.raises(NotSupported, match=f"transport '{name}'.*{mode} mode.*use transport='auto'"):
                choose(name, driver(mode))


@pytest.mark.parametrize("name", ["Staged", "", None, 3, b"auto", ["auto"], float("nan")])
def test_an_unknown_name_is_told_those_that_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown transport .*: there are auto, host, staged, managed"):
        choose(name, HostDriver())


@pytest.mark.parametrize("name", LATER)
def test_what_is_not_there_yet_says_so(name: str) -> None:
    with pytest.raises(NotSupported, match="not there yet; use one of auto"):
        choose(name, FakeDriver("managed"))
