"""What a pipeline has open: the engine that its plan says, another one when the plan changes, and an outbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from umarray.drivers.base import Driver
from umarray.errors import OutOfMemory
from umarray.pipeline import choose
from umarray.pipeline.engine import Engine
from umarray.pipeline.layout import Layout
from umarray.pipeline.outbox import Outbox
from umarray.pipeline.plan import Plan, Planner
from umarray.pipeline.report import Clock
from umarray.pipeline.structure import Spec


@final
class Rig:
    """Opens an engine at the first iteration, and between iterations another one where the planner says so.

    Parameters
    ----------
    out : bool
        There is an outbox.
    groups : bool
        Small batches may be grouped.
    """

    def __init__(
        self,
        driver: Driver,
        planner: Planner,
        prep: Callable[[Any, Any], Any] | None,
        clock: Clock,
        *,
        out: bool,
        groups: bool,
    ) -> None:
        self._driver = driver
        self._planner = planner
        self._prep = prep
        self._clock = clock
        self._out = out
        self._groups = groups
        self._gone = 0  # bytes moved by engines and an outbox that are closed
        self._plan: Plan | None = None
        self.engine: Engine | None = None
        self.outbox: Outbox | None = None
        self.slot_bytes = 0

    def plan(self, like: Any = None) -> Plan:
        """The plan of the engine; before there is one, that for slots like `like`."""
        if self._plan is not None:
            return self._plan
        return self._planner.first(self._driver.current_device(), Layout(Spec(1) if like is None else like))

    def open(self, like: Any) -> Engine:
        """An engine with slots like `like`."""
        device, layout = self._driver.current_device(), Layout(like)
        engine = self._make(device, layout, self._planner.first(device, layout))
        if self._out:
            try:
                self.outbox = Outbox(self._driver, device, self._clock)
            except BaseException:
                engine.close()
                self.engine = None
                raise
        return engine

    def replan(self, threads: bool) -> None:
        """Change engines if the iteration that has ended says so, and no result holds a slot."""
        engine, plan = self.engine, self._plan
        if engine is None or plan is None or any(ring.lent for ring in engine.rings()):
            return
        new = self._planner.next(plan, engine.device, engine.layout, *self._clock.lap(), threads)
        if new == plan:
            return
        self._close_engine()
        try:
            self._make(engine.device, engine.layout, new)
        except OutOfMemory:
            self._planner.refuse(new)
            self._make(engine.device, engine.layout, plan)

    def _make(self, device: int, layout: Layout, plan: Plan) -> Engine:
        group = choose.group_size(layout) if self._groups else 1
        name, slots = plan.transport, plan.slots
        self.engine = Engine(self._driver, device, layout, slots, name, self._prep, self._clock, group)
        self._plan, self.slot_bytes = plan, self.engine.slot_bytes()
        return self.engine

    def bytes_moved(self) -> int:
        """Bytes asked to be copied or migrated so far, both ways."""
        open_ones = [one for one in (self.engine and self.engine.transport, self.outbox) if one is not None]
        return self._gone + sum(one.bytes_moved for one in open_ones)

    def close(self) -> None:
        """Give everything back."""
        outbox, self.outbox = self.outbox, None
        try:
            if outbox is not None:
                self._gone += outbox.bytes_moved
                outbox.close()
        finally:
            self._close_engine()

    def _close_engine(self) -> None:
        engine, self.engine = self.engine, None
        if engine is not None:
            self._gone += engine.transport.bytes_moved
            engine.close()
