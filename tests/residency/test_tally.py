"""Counts in words."""

from umarray.residency.tally import Tally


def test_zeros_that_say_nothing_are_left_out() -> None:
    assert str(Tally(asked=1, calls=2, bytes=1 << 20)) == "1 asked (1.0 MiB), 0 unsupported; 2 calls"


def test_everything_else_is_told() -> None:
    text = str(Tally(3, 1, 2, 1, 1, 4, 10, 5, 6, 7, 2))
    assert text == (
        "2 asked (10 B), 1 unsupported, 1 of 3 arrays skipped (not managed memory), 5 B left out at shared pages, "
        "6 B between the elements of sliced views, 7 B not prefetched for want of room, 2 not restored, 1 failed; "
        "4 calls"
    )
