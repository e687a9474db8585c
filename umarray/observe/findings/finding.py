"""What a finding is, and what findings are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from umarray import html
from umarray.observe.facts import Costs, Facts, Move
from umarray.observe.subjects import History, Subject, histories
from umarray.sizes import format_size

Value: TypeAlias = int | float | str
Claim: TypeAlias = tuple[Subject, int]
"""A subject's part of the move of this index."""


@dataclass(frozen=True, slots=True)
class Finding(html.Shown):
    """One thing that could be better: what, where, the evidence, the remedy, and what it would save."""

    title: str
    """A few words: "on-demand faults"."""
    subject: Subject | None
    """The array; None where it is not about one."""
    what: str
    """What happened, in a sentence."""
    remedy: str
    """A line of code."""
    cost: float = 0.0
    """Seconds that it cost."""
    saving: float = 0.0
    """Seconds that the remedy is expected to save."""
    saving_bytes: int = 0
    """Bytes of memory that it is expected to free."""
    modelled: bool = True
    """`cost` and `saving` are modelled; False: they are of measured seconds."""
    evidence: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    """The figures that it rests on, by name."""
    claims: frozenset[Claim] = field(default=frozenset(), repr=False, compare=False)
    """The moves that it accounts for; a finding that is more general leaves them alone."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        about = self.subject
        return {
            "title": self.title,
            "array": None
            if about is None
            else {
                "name": about.name,
                "shape": None if about.shape is None else list(about.shape),
                "dtype": about.dtype,
                "nbytes": about.nbytes,
                "line": about.line,
                "count": about.count,
            },
            "what": self.what,
            "remedy": self.remedy,
            "cost_seconds": self.cost,
            "saving_seconds": self.saving,
            "saving_bytes": self.saving_bytes,
            "modelled": self.modelled,
            "evidence": dict(self.evidence),
        }

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.subject}" if self.subject is not None else self.title, f"  {self.what}"]
        if self.evidence:
            lines.append(f"  {self.figures}")
        lines.append(f"  remedy: {self.remedy}")
        lines.append(f"  saves about {self.saves}")
        return "\n".join(lines)

    @property
    def figures(self) -> str:
        """The evidence, in words."""
        return ", ".join(f"{name} {shown(name, value)}" for name, value in self.evidence.items())

    @property
    def saves(self) -> str:
        """What the remedy is expected to save, in words."""
        parts = []
        if self.saving or not self.saving_bytes:
            how = "modelled" if self.modelled else "at most, of measured seconds"
            parts.append(f"{format_seconds(self.saving)} of {format_seconds(self.cost)} ({how})")
        if self.saving_bytes:
            parts.append(f"{format_size(self.saving_bytes)} of memory")
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Case:
    """Facts, and what of them is not yet accounted for, by array."""

    facts: Facts
    histories: tuple[History, ...]

    @property
    def costs(self) -> Costs:
        """The model."""
        return self.facts.costs

    def without(self, claims: Iterable[Claim]) -> Case:
        """What is left when some moves are accounted for."""
        taken = frozenset(claims)
        if not taken:
            return self
        left = [
            replace(one, shares=tuple(share for share in one.shares if (one.subject, share.number) not in taken))
            for one in self.histories
        ]
        return replace(self, histories=tuple(one for one in left if one.shares))

    def cost(self, moves: Iterable[Move]) -> float:
        """Seconds that moves cost, modelled."""
        return sum(self.costs.of(move) for move in moves)


Finder: TypeAlias = Callable[[Case], list[Finding]]


def case_of(facts: Facts) -> Case:
    """All of the facts, nothing accounted for."""
    return Case(facts, histories(facts))


def claims(history: History, indices: Iterable[int]) -> frozenset[Claim]:
    """A history's parts of the moves of these indices."""
    return frozenset((history.subject, index) for index in indices)


def format_seconds(seconds: float) -> str:
    """Seconds for people.

    Examples
    --------
    >>> format_seconds(0.0123), format_seconds(2.5e-5), format_seconds(3.0)
    ('12.3 ms', '25 us', '3.00 s')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


def shown(name: str, value: Value) -> str:
    """A figure for people; its name says what it is: "... bytes", "... seconds"."""
    if isinstance(value, str):
        return value
    if name.endswith("bytes"):
        return format_size(value)
    if name.endswith("seconds"):
        return format_seconds(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
