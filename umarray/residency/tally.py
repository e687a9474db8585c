"""Counts of what a scope asked for, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from umarray import html
from umarray.sizes import format_size


@dataclass(slots=True)
class Tally(html.Shown):
    """Counts of one scope, or of one move. A hint is one advice, or one prefetch, on one merged range of pages.

    Notes
    -----
    "Asked" is what the driver took; no count says that pages moved.
    """

    arrays: int = 0
    """Arrays that were given."""
    skipped: int = 0
    """Those of them in plain, pinned or ordinary memory, on which no hint can act."""
    asked: int = 0
    """Hints that the driver took, or that stood already."""
    unsupported: int = 0
    """Hints that were no-ops: the mode, the runtime or the device has no such thing."""
    failed: int = 0
    """Calls that failed where nobody could be told by an exception: on exit, or issued unordered; they are logged."""
    calls: int = 0
    """Calls of the driver, those on exit included."""
    bytes: int = 0
    """Bytes of the pages that hints were taken for, several advices on a page counted each."""
    bytes_left_out: int = 0
    """Bytes at the ends of arrays whose pages are shared with a neighbour, which advice leaves alone."""
    bytes_between: int = 0
    """Bytes of pages that a sliced view spans and holds no element in; a prefetch moves them along."""
    bytes_clipped: int = 0
    """Bytes that a prefetch left where they are, since the place has no room for them."""
    not_restored: int = 0
    """Ranges on which exit could not restore what stood before, since it could not be read or the call failed."""
    bytes_renewed: int = 0
    """Of `bytes`: pages asked for without their contents, since all of them are overwritten."""

    def _repr_html_(self) -> str:
        return html.page("asked for", html.note(str(self)))

    def __str__(self) -> str:
        parts = [f"{self.asked} asked ({format_size(self.bytes)})", f"{self.unsupported} unsupported"]
        if self.skipped:
            parts.append(f"{self.skipped} of {self.arrays} arrays skipped (not managed memory)")
        for name, text in (
            ("bytes_renewed", "of it without contents"),
            ("bytes_left_out", "left out at shared pages"),
            ("bytes_between", "between the elements of sliced views"),
            ("bytes_clipped", "not prefetched for want of room"),
        ):
            if getattr(self, name):
                parts.append(f"{format_size(getattr(self, name))} {text}")
        if self.not_restored:
            parts.append(f"{self.not_restored} not restored")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return f"{', '.join(parts)}; {self.calls} calls"
