"""Asking a driver to move pages: how much, on which stream, in which order with the caller's work."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from umarray import events
from umarray.drivers.base import Array, Outcome
from umarray.log import warn_once
from umarray.places import Device, Place
from umarray.residency.spans import Span, Spans
from umarray.residency.state import State
from umarray.residency.streams import Lane, after, current_lanes
from umarray.residency.tally import Tally

_LOOK_FROM = 16 << 20  # bytes; below it asking how much memory is free would cost more than it saves


@dataclass(frozen=True, slots=True)
class Job:
    """A prefetch of some spans to a place. `lane` None is our own stream; a lane of device None is of the current one.

    `wait`: the caller's current stream waits for the pages. Without it nobody does, which is safe: a prefetch is a
    hint.
    """

    state: State
    spans: Spans
    to: Place
    stream: int | None
    device: int | None
    wait: bool
    tally: Tally
    keep: list[Array]
    """The arrays, alive as long as the job is."""
    scope: int = 0
    """Serial of the scope's records."""


def issue(job: Job) -> None:
    """Queue the prefetch; one call a merged span.

    Raises
    ------
    DriverError
        A call failed. An unordered one that goes through a thread is counted as failed instead, and logged.

    Notes
    -----
    The pages move after the work queued so far on the caller's current stream of the device (and of its current device,
    where that is another). Where the driver's prefetch keeps its caller, a thread of ours makes the calls, and this one
    waits for them only if the job says so.
    """
    send(job, _with_room(job))


def send(job: Job, targets: list[Span], renewed: Sequence[Span] = ()) -> None:
    """`issue` for spans that are known to have room; those to be renewed arrive without their contents.

    Raises
    ------
    DriverError
        As `issue`.
    """
    driver, tally = job.state.driver, job.tally
    if not (targets or renewed):
        return
    here = driver.current_device()
    device = job.to.id if isinstance(job.to, Device) else here
    if job.stream is None:
        lane = job.state.streams.lane(device)
    else:
        lane = Lane(job.stream, here if job.device is None else job.device)
    callers = current_lanes(driver, here, device)
    after(driver, lane, callers)
    if driver.device_count() and driver.traits(device).prefetch_blocks:
        future = job.state.streams.in_thread(lane.device, lambda: _in_thread(job, targets, renewed, lane))
        if job.wait:
            future.result()
        else:
            future.add_done_callback(lambda done: _log_failure(done, tally))
    else:
        _call(job, targets, renewed, lane)
    if job.wait:
        for caller in callers:
            after(driver, caller, [lane])


def issue_quietly(job: Job) -> None:
    """`issue` where no exception may come out; one is counted and logged."""
    try:
        issue(job)
    except Exception as error:
        job.tally.failed += 1
        warn_once("a prefetch to %s on leaving a scope failed", job.to, error=error)


def _in_thread(job: Job, targets: list[Span], renewed: Sequence[Span], lane: Lane) -> None:
    with job.state.driver.use_stream(lane.stream, lane.device):
        _call(job, targets, renewed, lane)


def _call(job: Job, targets: list[Span], renewed: Sequence[Span], lane: Lane) -> None:
    taken: list[Span] = []
    try:
        for number, span in enumerate((*targets, *renewed)):
            if _one(job, span, lane, renew=number >= len(targets)):
                taken.append(span)
    finally:
        job.state.asked.note(taken, job.to)
        job.state.told.note(taken, job.to)


def _one(job: Job, span: Span, lane: Lane, *, renew: bool) -> bool:
    """One call; whether the driver took it."""
    driver, tally = job.state.driver, job.tally
    tally.calls += 1
    call = driver.renew if renew else driver.prefetch
    asked = call(span.start, span.nbytes, job.to, lane.stream) is Outcome.ASKED
    if asked:
        tally.asked += 1
        tally.bytes += span.nbytes
        tally.bytes_renewed += span.nbytes if renew else 0
    else:
        tally.unsupported += 1
    if events.listeners:
        events.emit(events.Prefetched(span.start, span.nbytes, job.to, asked, lane.stream, job.scope))
    return asked


def _log_failure(done: Future[None], tally: Tally) -> None:
    error = done.exception()
    if error is not None:
        tally.failed += 1
        warn_once("a prefetch issued without waiting failed", error=error)


def room_for(job: Job, nbytes: int) -> int | None:
    """Bytes that fit where a job goes; None where so few are asked for that looking would not pay."""
    assert isinstance(job.to, Device)
    driver = job.state.driver
    if nbytes < _LOOK_FROM and nbytes * 16 < driver.traits(job.to.id).total_bytes:
        return None
    return _room(job)


def _room(job: Job) -> int:
    return job.state.driver.memory_info(job.to).free + job.state.asked.nbytes_at(job.to)


def _with_room(job: Job) -> list[Span]:
    """The spans, cut where the place has no room for more.

    Room is what is free, and what umarray itself asked to be there before: it is there already, or may be evicted.
    Without this a prefetch larger than the memory runs on, evicting what it has just brought.
    """
    driver, spans = job.state.driver, job.spans.outward()
    nbytes = sum(span.nbytes for span in spans)
    if not nbytes or not driver.device_count():
        return spans
    small = isinstance(job.to, Device) and nbytes * 16 < driver.traits(job.to.id).total_bytes
    if nbytes < _LOOK_FROM and (small or not isinstance(job.to, Device)):
        return spans
    room = _room(job)
    if nbytes <= room:
        return spans
    page, kept = job.spans.page, []
    for span in spans:
        cut = min(span.nbytes, room if room >= span.nbytes else room // page * page)
        if cut:
            kept.append(span._replace(stop=span.start + cut))
        room -= cut
    job.tally.bytes_clipped += nbytes - sum(span.nbytes for span in kept)
    return kept
