import pickle

import pytest

from umarray import errors


def test_out_of_memory_pickles_with_all_of_its_fields() -> None:
    before = errors.OutOfMemory(10, 5, 12, "the pool holds 5")
    after = pickle.loads(pickle.dumps(before))
    assert (after.requested, after.used, after.limit, after.detail) == (10, 5, 12, "the pool holds 5")
    assert str(after) == str(before)
    assert all(part in str(before) for part in ("10", "5", "12", "the pool holds 5"))


def test_driver_error_pickles_and_names_the_call() -> None:
    after = pickle.loads(pickle.dumps(errors.DriverError("hipMalloc", 2, "out of memory")))
    assert (after.call, after.code) == ("hipMalloc", 2)
    assert "hipMalloc" in str(after) and "2" in str(after)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(errors.OutOfMemory, MemoryError), (errors.NotSupported, NotImplementedError), (errors.ClosedError, ValueError),
     (errors.DriverError, RuntimeError), (errors.BrokenInstallation, ImportError), (errors.EscapeWarning, UserWarning)],
)  # fmt: skip
def test_each_is_also_what_a_caller_would_catch(ours: type, theirs: type) -> None:
    assert issubclass(ours, theirs)
    assert issubclass(ours, (errors.UmarrayError, errors.UmarrayWarning))
