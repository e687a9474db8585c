"""From a watch's records to the facts that findings are drawn from."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import fields, replace
from typing import Any

from umarray import events
from umarray.observe.facts import Advice, Costs, Escaped, Facts, Made, Move, Named, Pool, Prefetch, View
from umarray.observe.names import assigned
from umarray.observe.recording import Header, Recording, Stamped


def facts_of(recording: Recording) -> Facts:
    """What a recording knows, as `Facts`."""
    header, records = recording.header, recording.records
    ended = header.ended if header.ended is not None else max((one.at for one in records), default=header.began)
    gathered = _Gathered(ended)
    for stamped in records:
        gathered.add(stamped)
    return Facts(
        began=header.began,
        ended=ended,
        page=header.migrates,
        grain=_grain(header),
        memory=dict(header.memory),
        source="; ".join(f"{one['name']} ({one['exactness']})" for one in header.sources),
        sees_uses="used_bytes" in header.sees,
        lost=header.lost,
        costs=_costs(header),
        moves=tuple(gathered.moves),
        prefetches=tuple(gathered.prefetches),
        advices=tuple(gathered.advices),
        views=tuple(gathered.views.values()),
        made=tuple(gathered.made),
        named=tuple(gathered.named),
        escapes=tuple(gathered.escapes),
        pools=tuple(_pool(one) for one in header.pools),
    )


_GRAIN = 64 << 10  # CUDA's driver moves 64 KiB where a page of 4 KiB was touched (seen with CUPTI)


class _Gathered:
    """Records in order of time, put together."""

    def __init__(self, ended: float) -> None:
        self._ended = ended
        self._began: dict[int, events.Began] = {}
        self._asked: dict[int, float] = {}
        self._faults: dict[tuple[int, int, float], tuple[int, events.Faulted]] = {}
        self._alive: list[tuple[int, int]] = []  # address and number of each block, by address: they do not overlap
        self.moves: list[Move] = []
        self.prefetches: list[Prefetch] = []
        self.advices: list[Advice] = []
        self._standing: list[int] = []  # the numbers of those that nobody took back yet
        self.views: dict[int, View] = {}
        self.made: list[Made] = []
        self.named: list[Named] = []
        self.escapes: list[Escaped] = []
        self._known: set[Named] = set()
        self._handlers: dict[type[events.Record], Any] = {
            events.Began: self._begun,
            events.Ended: self._finished,
            events.Waited: self._waited,
            events.Prefetched: self._prefetched,
            events.Advised: self._advised,
            events.Faulted: self._faulted,
            events.Migrated: self._migrated,
            events.Used: self._used,
            events.Made: self._block,
            events.Gone: self._gone,
            events.Named: self._named,
            events.EpochEnded: self._epoch,
        }

    def add(self, stamped: Stamped) -> None:
        """The next record."""
        handler = self._handlers.get(type(stamped.record))
        if handler is not None:
            handler(stamped.at, stamped.record)

    def _begun(self, at: float, record: events.Began) -> None:
        self._began[record.serial], self._asked[record.serial] = record, at
        for x in record.arrays:
            self._name(Named("", x.address, x.nbytes, x.shape, x.dtype))
        if record.action == "host_view" and record.arrays:
            x = record.arrays[0]
            self.views[record.serial] = View(at, x.address, x.nbytes, record.label, self._ended, line=record.line)

    def _finished(self, at: float, record: events.Ended) -> None:
        if record.serial in self.views:
            self.views[record.serial] = replace(self.views[record.serial], until=at)

    def _waited(self, at: float, record: events.Waited) -> None:
        view = self.views.get(record.scope)
        if view is not None:
            self.views[record.scope] = replace(view, waited=view.waited + record.seconds)

    def _prefetched(self, at: float, record: events.Prefetched) -> None:
        began = self._began.get(record.scope)
        stream, line = (record.stream, "") if began is None else (began.stream, began.line)
        at = self._asked.get(record.scope, at)  # not when the call returned, which may be much later
        self.prefetches.append(Prefetch(at, record.address, record.nbytes, record.to, record.supported, stream, line))

    def _advised(self, at: float, record: events.Advised) -> None:
        if record.on:
            self._standing.append(len(self.advices))
            self.advices.append(Advice(at, record.address, record.nbytes, record.advice, record.place, self._ended))
            return
        left = []
        for index in self._standing:
            one = self.advices[index]
            within = one.address < record.address + record.nbytes and record.address < one.stop
            if one.advice == record.advice and within:
                self.advices[index] = replace(one, until=at)
            else:
                left.append(index)
        self._standing = left

    def _faulted(self, at: float, record: events.Faulted) -> None:
        self._faults[record.address, record.nbytes, record.start] = (len(self.moves), record)
        self.moves.append(
            Move(
                at,
                record.address,
                max(record.nbytes, 1),
                None,
                record.place,
                "faulted",
                "fault",
                record.count,
                record.write,
            )
        )

    def _migrated(self, at: float, record: events.Migrated) -> None:
        """A fault that was told just before, of the same pages at the same time, is what moved them."""
        index, fault = self._faults.pop((record.address, record.nbytes, record.start), (-1, None))
        move = Move(
            at, record.address, record.nbytes, record.source, record.to, record.kind, record.cause, write=record.write
        )
        if fault is None:
            self.moves.append(move)
        else:
            self.moves[index] = replace(move, faults=fault.count, write=fault.write)

    def _used(self, at: float, record: events.Used) -> None:
        self.moves.append(
            Move(at, record.address, record.nbytes, record.place, record.place, "used", "fault", write=record.write)
        )

    def _block(self, at: float, record: events.Made) -> None:
        """Whatever lay there before is gone, also a block that was made before the watch, of whose end nobody told."""
        index = bisect_left(self._alive, (record.address, 0))
        if index and self.made[self._alive[index - 1][1]].stop > record.address:
            index -= 1
        while index < len(self._alive) and self._alive[index][0] < record.address + record.nbytes:
            self._end(at, index)
        self._alive.insert(index, (record.address, len(self.made)))
        self.made.append(Made(at, record.address, record.nbytes, record.line, name=assigned(record.line)))

    def _gone(self, at: float, record: events.Gone) -> None:
        index = bisect_left(self._alive, (record.address, 0))
        if index < len(self._alive) and self._alive[index][0] == record.address:
            self._end(at, index)

    def _end(self, at: float, index: int) -> None:
        number = self._alive.pop(index)[1]
        self.made[number] = replace(self.made[number], gone=at)

    def _named(self, at: float, record: events.Named) -> None:
        self._name(Named(record.name, record.address, record.nbytes, record.shape, record.dtype))

    def _epoch(self, at: float, record: events.EpochEnded) -> None:
        self.escapes += [Escaped(line, count, nbytes, record.label) for line, count, nbytes in record.lines]

    def _name(self, one: Named) -> None:
        if one not in self._known:
            self._known.add(one)
            self.named.append(one)


def _grain(header: Header) -> int:
    """Bytes that may have moved along with a touch: none where every page is told of."""
    return 0 if any(source["exactness"] == "exact" for source in header.sources) else _GRAIN


def _costs(header: Header) -> Costs:
    given: Any = getattr(header, "costs", {})
    known = {one.name for one in fields(Costs)}
    return Costs(**{name: value for name, value in given.items() if name in known})


def _pool(statistics: Any) -> Pool:
    return Pool(
        str(statistics.get("kind", "")),
        int(statistics.get("arena_bytes") or 0),
        int(statistics.get("current_bytes") or 0),
        statistics.get("fragmentation"),
    )
