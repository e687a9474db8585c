"""One state for the process's driver."""

from tests.fake_driver import FakeDriver
from umarray.residency.state import state_of


def test_a_driver_has_one_state_and_another_driver_another() -> None:
    one, other = FakeDriver(), FakeDriver()
    state = state_of(one)
    assert state_of(one) is state and state_of(other) is not state and state_of(other).driver is other
