"""How a pipeline's batches travel and how many are under way: chosen before the first iteration, corrected between.

Each iteration is a measurement of one plan, a transport and a number of slots. Where it disagrees with what was
expected, the next iteration tries another plan; what took the least time a step stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from umarray.drivers.base import Driver
from umarray.pipeline import choose
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import slowest

SLOTS = 3
"""One written, one on its way, one computed on."""

SLOTS_HOMING = 4
"""Where a slot's bytes travel back too (12.0 ms a step against 13.9 with 3 in rings by hand, NVIDIA H200)."""

MOST_SLOTS = 6

ENOUGH = 8
"""Steps that an iteration must have to be a measurement, for each slot."""

OVERLAPS = 0.9
"""A step of which the slowest stage takes less than so much might gain from a slot more."""

WRONG = 1.5
"""A transport that takes so many times what was expected of it is doubted."""

BETTER = 0.97
"""A plan must take less than so much of another's time a step to be preferred to it."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """A transport, why, and how many slots."""

    transport: str
    reason: str
    slots: int


@final
class Planner:
    """Makes the first plan, and the next one from what an iteration took.

    Parameters
    ----------
    transport : str
        A name, or "auto".
    slots : int or None
        None: found.
    """

    def __init__(self, driver: Driver, transport: str, slots: int | None) -> None:
        self._driver = driver
        self._asked = transport
        self._slots = slots
        self._taken: dict[Plan, float] = {}
        self._expected: dict[str, float] = {}
        self._seen: dict[str, float] = {}

    def first(self, device: int, layout: Layout) -> Plan:
        """The plan for an iteration of which nothing is known."""
        if self._asked == "auto":
            names = choose.possible(self._driver)
            self._expected, _ = choose.costs(layout.nbytes, device, names)
            name, reason = choose.best(self._driver, device, layout.nbytes, {})
        else:
            name, reason = self._asked, "asked for"
        return Plan(name, reason, self._lead(name, device))

    def _lead(self, name: str, device: int) -> int:
        if self._slots is not None:
            return self._slots
        homing = name == "managed" and not self._driver.traits(device).renew
        return SLOTS_HOMING if homing else SLOTS

    def next(
        self,
        plan: Plan,
        device: int,
        layout: Layout,
        steps: int,
        step: float,
        stages: Mapping[str, float],
        threads: bool,
    ) -> Plan:
        """The plan for the next iteration, after one with `plan` of so many steps, each of so many seconds.

        `threads`: preparation had threads of its own. Without them a step is the sum of what the caller does, and more
        slots cannot help.
        """
        if steps < ENOUGH * plan.slots or step <= 0.0:
            return plan
        self._taken[plan] = min(step, self._taken.get(plan, step))
        trial = self._other_transport(plan, device, layout, step, stages)
        if trial is None and self._slots is None and plan.slots < MOST_SLOTS and threads:
            if slowest(stages, 1) < OVERLAPS * step:
                trial = replace(plan, slots=plan.slots + 1)
        if trial is not None and not any(self._same(trial, known) for known in self._taken):
            return trial
        found = min(self._taken, key=lambda known: self._taken[known])
        return found if self._taken[found] < BETTER * self._taken[plan] else plan

    def refuse(self, plan: Plan) -> None:
        """There was no memory for this plan: it is not tried again."""
        self._taken[plan] = float("inf")

    def _other_transport(
        self, plan: Plan, device: int, layout: Layout, step: float, stages: Mapping[str, float]
    ) -> Plan | None:
        """Another transport, where this one is what steps wait for and takes far longer than was expected."""
        expected = self._expected.get(plan.transport)
        took = stages.get("transfer", 0.0) + stages.get("back", 0.0)
        if expected is None or took < OVERLAPS * step or took < WRONG * expected:
            return None
        self._seen[plan.transport] = took
        name, reason = choose.best(self._driver, device, layout.nbytes, self._seen)
        return None if name == plan.transport else Plan(name, reason, self._lead(name, device))

    @staticmethod
    def _same(one: Plan, other: Plan) -> bool:
        return (one.transport, one.slots) == (other.transport, other.slots)
