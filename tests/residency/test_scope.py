"""What holds for every scope: when it acts, what it raises, what it keeps alive."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import Call, FakeDriver
from tests.residency.arrays import SCOPES, hints, managed, standing
from umarray.errors import ClosedError, DriverError, UnusedScopeWarning
from umarray.places import HOST

# Before entry, and entering


@pytest.mark.parametrize("make", SCOPES)
def test_nothing_happens_before_entry(fake: FakeDriver, make: Callable[[Any], Any]) -> None:
    x = managed(fake)
    scope = make(x)
    assert hints(fake) == 0 and str(scope).endswith("0 calls")
    with scope:
        assert hints(fake) > 0


@pytest.mark.parametrize("make", [*SCOPES, lambda x: um.host_view(x)])
def test_a_scope_collected_unentered_warns_with_its_line(fake: FakeDriver, make: Callable[[Any], Any]) -> None:
    x = managed(fake)
    line = make.__code__  # type: ignore[attr-defined]
    with pytest.warns(UnusedScopeWarning, match=f"{line.co_filename}:{line.co_firstlineno}") as caught:
        make(x)
        gc.collect()
    assert (caught[0].filename, caught[0].lineno) == (line.co_filename, line.co_firstlineno)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with make(x):
            pass


@pytest.mark.parametrize("make", SCOPES)
def test_a_scope_is_entered_once_and_left_once(fake: FakeDriver, make: Callable[[Any], Any]) -> None:
    scope = make(managed(fake))
    with pytest.raises(ClosedError, match="not open"):
        scope.__exit__(None, None, None)
    with scope, pytest.raises(ClosedError, match="entered before"):
        scope.__enter__()
    for again in (scope.__enter__, lambda: scope.__exit__(None, None, None)):
        with pytest.raises(ClosedError):
            again()


def test_every_array_is_looked_at_before_the_first_call(fake: FakeDriver) -> None:
    x = managed(fake)
    scope = um.prefetch(x, managed(fake))
    fake.fail("find", 1)
    with pytest.raises(DriverError), scope:
        pass
    assert hints(fake) == 0
    with pytest.raises(ClosedError):
        scope.__enter__()


# Exceptions


class Mine(Exception):
    pass


@pytest.mark.parametrize("make", SCOPES)
@pytest.mark.parametrize("broken", [None, "prefetch", "advise"])
def test_the_exception_in_the_block_comes_out(fake: FakeDriver, make: Callable[[Any], Any], broken: str | None) -> None:
    x = managed(fake)
    with pytest.raises(Mine) as caught, make(x):
        if broken:
            fake.fail(broken, 700)
        raise Mine
    assert caught.value.__context__ is None
    if broken is None:
        assert standing(fake, x) == (False, False, ())


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_entry_that_fails_takes_back_what_it_asked(fake: FakeDriver, after: int) -> None:
    x, calls = managed(fake), list[int]()

    def fail(call: Call) -> None:
        if call.name == "advise":
            calls.append(1)
            if len(calls) == after + 1:
                raise DriverError("advise", 700, "broken")

    fake.on_call = fail
    with pytest.raises(DriverError, match="700"), SCOPES[1](x):
        raise AssertionError("the block ran")
    assert standing(fake, x) == (False, False, ())


def test_a_failing_prefetch_on_exit_is_counted_and_logged(fake: FakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    x = managed(fake)
    with um.prefetch(x, back=HOST) as scope:
        fake.fail("prefetch", 700)
    assert scope.tally.failed == 1 and "700" in caplog.text


# Life


def test_arrays_are_let_go_when_the_scope_has_no_more_use_for_them(fake: FakeDriver) -> None:
    class Owned(np.ndarray):  # type: ignore[type-arg]
        pass

    def made() -> tuple[Any, weakref.ref[Any]]:
        x = managed(fake).view(Owned)
        return x, weakref.ref(x)

    x, alive = made()
    with um.prefetch([x]) as one:
        del x
        assert alive() is None  # nothing to undo
    x, alive = made()
    with um.prefetch(x, back=HOST) as two:
        del x
        assert alive() is not None
    assert alive() is None
    x, alive = made()
    with um.advise(x, read_mostly=True) as three:
        del x
        assert alive() is not None
    assert alive() is None
    assert str(one) and str(two) and str(three)  # the scopes live on, with their counts


def test_an_entry_that_fails_lets_its_arrays_go(fake: FakeDriver) -> None:
    class Owned(np.ndarray):  # type: ignore[type-arg]
        pass

    x = managed(fake).view(Owned)
    alive = weakref.ref(x)
    scope = um.advise(x, read_mostly=True)
    fake.fail("advise", 700)
    try:
        scope.__enter__()
    except DriverError:
        del x
    gc.collect()
    assert alive() is None


def test_a_scope_dropped_while_open_takes_its_advice_back(fake: FakeDriver) -> None:
    x = managed(fake)
    scope = um.advise(x, read_mostly=True)
    scope.__enter__()
    assert standing(fake, x)[0] is True
    del scope
    gc.collect()
    assert standing(fake, x)[0] is False


def test_a_generator_collected_inside_anything_ends_its_scope(fake: FakeDriver) -> None:
    x = managed(fake)

    def work() -> Any:
        with um.advise(x, read_mostly=True):
            yield

    held: list[Any] = [work()]
    next(held[0])
    held.append(held)  # a cycle: only the collector ends it
    del held

    def collect(call: Call) -> None:
        if call.name == "advise" and call.args["on"]:
            fake.on_call = None
            gc.collect()

    fake.on_call = collect
    with um.advise(x, preferred_location=HOST):
        assert standing(fake, x)[:2] == (False, HOST)


def test_an_interpreter_that_ends_with_open_and_unused_scopes_is_silent() -> None:
    program = """
import numpy as np, umarray as um
x = np.ones(100)
scopes = [um.advise(x, read_mostly=True), um.prefetch(x, back=um.HOST)]
for scope in scopes:
    scope.__enter__()
view = um.host_view(x, "r+"); h = view.__enter__()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
