"""The line that a warning belongs to."""

import warnings

from umarray.residency.callers import calling_line


def test_it_is_the_line_outside_umarray() -> None:
    line = calling_line()
    assert line.filename == __file__ and str(line) == f"{__file__}:{line.number}"
    with open(__file__) as source:
        assert "line = calling_line()" in source.readlines()[line.number - 1]


def test_a_warning_is_shown_once_a_line() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            calling_line().warn("here", UserWarning)
        calling_line().warn("here", UserWarning)
    assert len(found) == 2 and {one.filename for one in found} == {__file__}
