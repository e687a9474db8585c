"""What `access` picks for each span, and why: a function of what is known, which changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import NamedTuple

from umarray.calibration import Calibration
from umarray.places import Device
from umarray.residency.spans import Range, Span, Spans, merge
from umarray.residency.state import State
from umarray.sizes import format_size

_PIECES = 16  # of one span; with more of them looking at each would cost more than it saves
_THERE = "it was asked to be there before, or used there, and the host has none of its pages"
_THERE_AS_TOLD = "it was asked to be there before, or used there, and nothing was seen to move it since"


class Pick(Enum):
    """What is done for a span before the work of a scope."""

    NOTHING = "nothing"
    ON_DEMAND = "on demand"
    PREFETCH = "prefetch"
    RENEW = "without contents"
    MAP = "over the bus"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was picked for some spans, and why."""

    pick: Pick
    spans: tuple[Span, ...]
    why: str

    @property
    def nbytes(self) -> int:
        """Bytes of the pages."""
        return sum(span.nbytes for span in self.spans)

    def __str__(self) -> str:
        return f"{self.pick.value}: {format_size(self.nbytes)}, {self.why}"


@dataclass(frozen=True, slots=True)
class Uses:
    """What the work does with pages. Pages in neither list are read and written."""

    overwritten: list[Range]
    """Whole pages of which every byte is written and none is read before."""
    read: list[Range]
    """Pages that are read and not written."""


def uses_of(reads: Spans, writes: Spans, updates: Spans, gapped: Spans) -> Uses:
    """From the spans of each list; `gapped` are those of the writes that leave bytes between their elements."""
    kept = merge((span.start, span.stop) for one in (reads, updates, gapped) for span in one.outward())
    changed = merge((span.start, span.stop) for one in (writes, updates, gapped) for span in one.outward())
    overwritten = [(span.start, span.stop) for span in writes.inward()]
    return Uses(without(overwritten, kept), without([(span.start, span.stop) for span in reads.outward()], changed))


def without(ranges: list[Range], others: list[Range]) -> list[Range]:
    """What of sorted `ranges` lies in none of the sorted `others`.

    Examples
    --------
    >>> without([(0, 10), (20, 30)], [(2, 4), (8, 25)])
    [(0, 2), (4, 8), (25, 30)]
    """
    left: list[Range] = []
    for start, stop in ranges:
        for low, high in others:
            if high <= start or low >= stop:
                continue
            if start < low:
                left.append((start, low))
            start = high
        if start < stop:
            left.append((start, stop))
    return left


def within(ranges: Iterable[Range], span: Span) -> list[Span]:
    """The parts of ranges that lie in a span."""
    cut = ((max(start, span.start), min(stop, span.stop)) for start, stop in ranges)
    return [span._replace(start=start, stop=stop) for start, stop in cut if start < stop]


class _Piece(NamedTuple):
    """A part of a span, how many of its bytes are missing on the device and on what evidence, and whether it is
    overwritten."""

    span: Span
    missing: int
    why: str
    overwritten: bool


def all_there(state: State, device: int, pages: list[Span]) -> Choice | None:
    """The one choice where all pages are known to be on the device, which is what a loop comes to; else None."""
    place, host_share, share = Device(device), state.driver.host_share, None
    for span in pages:
        share = host_share(span.start, span.stop - span.start)
        if share or state.told.places(span) != {place: span.stop - span.start}:
            return None
    return Choice(Pick.NOTHING, tuple(pages), _THERE if share == 0 else _THERE_AS_TOLD)


class Planner:
    """Decides for one device, from what is known at this moment."""

    def __init__(
        self,
        state: State,
        device: int,
        costs: Calibration,
        uses: Callable[[], Uses],
        stale: Callable[[], bool] = lambda: True,
    ) -> None:
        """`uses` and `stale`, whether the host has any byte that is overwritten, are looked up where they matter."""
        self._state, self._driver, self._device, self._costs = state, state.driver, device, costs
        self._make_uses, self._stale = uses, stale
        self._uses: Uses | None = None
        self.choices: list[Choice] = []

    def plan(self, pages: list[Span], room: Callable[[int], int | None]) -> list[Choice]:
        """Choices for spans; `room` gives the bytes that fit where that matters for so many, else None."""
        away: list[tuple[Span, list[_Piece]]] = []
        for span in pages:
            pieces = self._pieces(span)
            for piece in pieces:
                if not piece.missing:
                    self._choose(Pick.NOTHING, [piece.span], piece.why)
            missing = [piece for piece in pieces if piece.missing]
            if missing:
                away.append((span, missing))
        left = room(sum(piece.missing for _, pieces in away for piece in pieces)) if away else None
        for span, pieces in away:
            nbytes = sum(piece.missing for piece in pieces)
            if left is not None and nbytes > left:
                text = f"{format_size(nbytes)} more are not free on the device: it is read and written where it lies"
                self._choose(Pick.MAP, [piece.span for piece in pieces], text)
                continue
            left = None if left is None else left - nbytes
            self._bring(span, pieces)
        return self.choices

    def _choose(self, pick: Pick, spans: list[Span], why: str) -> None:
        if spans:
            self.choices.append(Choice(pick, tuple(spans), why))

    def _pieces(self, span: Span) -> list[_Piece]:
        """A span, or the parts of it that are overwritten and the others, where they may lie apart."""
        missing, why = self._missing(span)
        if not missing or not self._could_renew(missing):
            return [_Piece(span, missing, why, False)]
        overwritten = within(self.uses.overwritten, span)
        if not overwritten or overwritten == [span] or len(overwritten) > _PIECES:
            return [_Piece(span, missing, why, overwritten == [span])]
        rest = within(without([(span.start, span.stop)], [(one.start, one.stop) for one in overwritten]), span)
        parts = sorted([(one, True) for one in overwritten] + [(one, False) for one in rest])
        return [_Piece(one, *self._missing(one), whole) for one, whole in parts]

    def _could_renew(self, nbytes: int) -> bool:
        renew, prefetch = self._costs.renew, self._costs.prefetch
        if renew is None or prefetch is None or not self._driver.traits(self._device).renew:
            return False
        return renew(nbytes) < prefetch(nbytes) and self._stale()

    def _missing(self, span: Span) -> tuple[int, str]:
        """How many bytes of a span are not known to be on the device, and on what evidence."""
        driver, here = self._driver, Device(self._device)
        share = driver.host_share(span.start, span.nbytes)
        if share:
            missing = min(span.nbytes, ceil(share * span.nbytes))
            return missing, f"{'its pages lie' if share == 1 else f'{format_size(missing)} of it lie'} on the host"
        told = self._state.told.places(span)
        mine = told.pop(here, 0)
        if mine == span.nbytes:
            return 0, _THERE if share == 0 else _THERE_AS_TOLD
        elsewhere = [place for place in told if isinstance(place, Device)]
        if elsewhere:
            return span.nbytes - mine, f"it was last asked to be on {elsewhere[0]}, or used there"
        if share is None:
            return span.nbytes - mine, "nothing is known of where it lies"
        fresh = None in told and bool(within(self.uses.overwritten, span))
        if driver.device_count() > 1 or fresh:
            return span.nbytes - mine, "the host has none of its pages, and nobody named them before"
        return 0, "the host has none of its pages, and there is one device"

    @property
    def uses(self) -> Uses:
        """Made when first asked for: most spans are where they should be."""
        if self._uses is None:
            self._uses = self._make_uses()
        return self._uses

    def _bring(self, span: Span, pieces: list[_Piece]) -> None:
        """Choose for the pieces of a span that are missing and for which there is room."""
        why = max(pieces, key=lambda piece: piece.missing).why
        if self._read_elsewhere(span) and self._reads_only(span):
            self._choose(Pick.DUPLICATE, [span], f"{why}, where it is read as well: both keep a copy")
            return
        renewed = [piece for piece in pieces if piece.overwritten]
        rest = [piece for piece in pieces if not piece.overwritten]
        if renewed and self._renewing_pays(renewed, rest):
            self._choose(
                Pick.RENEW, [piece.span for piece in renewed], f"{renewed[0].why}, and all of it is overwritten"
            )
        else:
            rest = pieces
        if not rest:
            return
        costs, missing = self._costs, sum(piece.missing for piece in rest)
        ahead = costs.prefetch(missing) if costs.prefetch else 0.0
        faults = costs.demand(missing) if costs.demand else ahead
        text = f"{why}: {_time(ahead)} asked for ahead against {_time(faults)} of faults ({self._source})"
        pick = Pick.PREFETCH if ahead <= faults else Pick.ON_DEMAND
        one_call = [rest[0].span] if len(rest) == 1 else None
        self._choose(pick, one_call or within(merge((one.span.start, one.span.stop) for one in rest), span), text)

    @property
    def _source(self) -> str:
        return "measured" if self._costs.measured else "assumed"

    def _renewing_pays(self, renewed: list[_Piece], rest: list[_Piece]) -> bool:
        """Whether renewing beats moving stale bytes, which other pages of the same call may carry along for little."""
        renew, prefetch = self._costs.renew, self._costs.prefetch
        if renew is None or prefetch is None:
            return False
        stale, others = (sum(piece.missing for piece in pieces) for pieces in (renewed, rest))
        moving = prefetch(stale + others) - prefetch(others) if others else prefetch(stale)
        return sum(renew(piece.span.nbytes) for piece in renewed) < moving

    def _reads_only(self, span: Span) -> bool:
        return any(start <= span.start and span.stop <= stop for start, stop in self.uses.read)

    def _read_elsewhere(self, span: Span) -> bool:
        """Whether a copy should stay where the pages are: read-mostly stands on them, or a scope reads them there."""
        ledger = self._state.ledger
        if not ledger.empty and any(one.advice == "read_mostly" for one in ledger.standing([(span.start, span.stop)])):
            return True
        return self._state.readers.elsewhere(span, self._device)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
