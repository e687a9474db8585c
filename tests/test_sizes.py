from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umarray.sizes import LARGEST, format_size, parse_size


@pytest.mark.parametrize(
    ("written", "nbytes"),
    [(1, 1), ("512MiB", 512 << 20), ("2GB", 2 * 10**9), ("1.5KiB", 1536), (" 3 GiB ", 3 << 30), ("7", 7), ("7B", 7),
     ("4kB", 4000), ("9007199254740993", 9007199254740993), (LARGEST, LARGEST)],
)  # fmt: skip
def test_sizes(written: Any, nbytes: int) -> None:
    assert parse_size(written) == nbytes


def test_a_percentage_is_of_what_the_caller_says() -> None:
    assert parse_size("25%", total=lambda: 4000) == 1000
    with pytest.raises(ValueError, match="25%"):
        parse_size("25%")
    with pytest.raises(ValueError, match="over 100%"):
        parse_size("101%", total=lambda: 4000)


@pytest.mark.parametrize(
    "bad", [0, -1, 2**63, 2**64, "0", "-1", "0%", "1e400GB", "99999999TiB", "", "MiB", "1 MB 2", "5XB", "nan"]
)
def test_bad_sizes_are_value_errors_that_quote_the_value(bad: Any) -> None:
    with pytest.raises(ValueError) as caught:
        parse_size(bad, total=lambda: 1000, name="arena_bytes")
    assert repr(bad) in str(caught.value) and "arena_bytes" in str(caught.value)


@pytest.mark.parametrize("bad", [None, True, 1.0, float("nan"), [1], b"1"])
def test_other_types_are_type_errors(bad: Any) -> None:
    with pytest.raises(TypeError, match="size"):
        parse_size(bad)


@given(st.integers(1, 2**40), st.sampled_from([("KiB", 1024), ("MiB", 1024**2), ("kB", 1000), ("B", 1)]))
def test_whole_numbers_are_exact(number: int, unit: tuple[str, int]) -> None:
    expected = number * unit[1]
    if expected <= LARGEST:
        assert parse_size(f"{number}{unit[0]}") == expected


def test_format() -> None:
    assert [format_size(n) for n in (0, 1023, 1024, 1 << 30, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.0 GiB",
        "5.0 TiB",
    ]
