"""Findings, one a module: what could be better about what moved. Each is a function of a `Case` and of nothing else."""

from __future__ import annotations

from umarray.observe.facts import Facts
from umarray.observe.findings import (
    bouncing,
    default_stream,
    escapes,
    fragmentation,
    host_waits,
    late,
    on_demand,
    random_table,
    read_mostly_written,
    shared_page,
    stale,
    thrash,
    unused,
)
from umarray.observe.findings.finding import Finder, Finding, case_of

__all__ = ["FINDERS", "LEAST", "Finding", "found_in"]

FINDERS: tuple[Finder, ...] = (
    thrash.find,
    shared_page.find,
    read_mostly_written.find,
    bouncing.find,
    late.find,
    random_table.find,
    stale.find,
    on_demand.find,
    unused.find,
    default_stream.find,
    host_waits.find,
    escapes.find,
    fragmentation.find,
)
"""From the particular to the general: what one accounts for, those after it leave alone."""

LEAST = 200e-6
"""Seconds that a finding must be able to save, to be worth a line."""
_SHARE = 0.02  # of what all findings could save


def found_in(facts: Facts) -> tuple[Finding, ...]:
    """What is found, in order of cost; then what costs memory and no time, the most bytes first."""
    case, found = case_of(facts), []
    for find in FINDERS:
        here = [one for one in find(case) if one.saving_bytes or one.saving >= LEAST]
        found += here
        case = case.without(claim for one in here for claim in one.claims)
    least = _SHARE * sum(one.saving for one in found)
    worth = [one for one in found if one.saving_bytes or one.saving >= least]
    return tuple(sorted(worth, key=lambda one: (-one.cost, -one.saving_bytes)))
