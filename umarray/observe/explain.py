"""explain: what a watch's records say could be better, the costliest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from umarray import html
from umarray.observe.digest import facts_of
from umarray.observe.facts import Facts
from umarray.observe.findings import Finding, found_in
from umarray.observe.findings.finding import format_seconds
from umarray.observe.recording import Recording
from umarray.observe.watch import last_watch, watch


@dataclass(frozen=True, slots=True)
class Explanation(html.Shown):
    """Findings in order of cost; it prints, and shows itself in notebooks."""

    findings: tuple[Finding, ...]
    seconds: float
    """How long was watched."""
    source: str
    """Who told of what moved, and how exactly."""
    costs: str
    """Where the figures of the model come from."""
    lost: int = 0
    """Records that there was no room for: findings rest on the others."""

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "seconds": self.seconds,
            "source": self.source,
            "costs": self.costs,
            "lost": self.lost,
            "findings": [one.as_dict() for one in self.findings],
        }

    def __str__(self) -> str:
        head = f"{_count(len(self.findings))} in {format_seconds(self.seconds)}"
        lines = [f"{number}. {one}" for number, one in enumerate(self.findings, 1)]
        return "\n".join([head, *lines, *self._notes()])

    def _repr_html_(self) -> str:
        rows = [
            (
                number,
                one.title,
                "" if one.subject is None else one.subject,
                f"{one.what}\n{one.figures}" if one.evidence else one.what,
                one.remedy,
                one.saves,
            )
            for number, one in enumerate(self.findings, 1)
        ]
        head = ("", "finding", "array", "what happened", "remedy", "saves about")
        title = f"{_count(len(self.findings))} in {format_seconds(self.seconds)}"
        table = [html.table(head, rows)] if rows else []
        return html.page(title, *table, *(html.note(note) for note in self._notes()))

    def _notes(self) -> list[str]:
        notes = [
            f"Told by {self.source}." if self.source else "Nothing here can tell what moved: only requests are known."
        ]
        if any(one.modelled and one.saving for one in self.findings):
            notes.append(f"Savings are modelled, from {self.costs}.")
        if self.lost:
            notes.append(f"{self.lost:,} records were lost, so there may be more.")
        return notes


def explain(of: watch | Recording | Facts | None = None) -> Explanation:
    """Say what could be better about what a watch saw, the costliest first.

    Parameters
    ----------
    of : watch, or a trace's Recording, optional
        What to explain; by default the last watch that ended.

    Returns
    -------
    Explanation
        It prints, iterates over its findings, and shows itself in notebooks.

    Raises
    ------
    ValueError
        Nothing was watched yet.
    TypeError
        `of` is nothing that can be explained.

    Notes
    -----
    Each finding names the array, the evidence in figures, a remedy as a line of code, and what that would save:
    modelled from what moving costs, and called so. Moves are seen where a source can tell of them (`watch.report` says
    which); without one only what needs none is found.

    Examples
    --------
    >>> import umarray as um
    >>> with um.watch() as w:
    ...     x = um.zeros(1000)
    >>> len(um.explain(w))
    0
    """
    if of is None:
        of = last_watch()
        if of is None:
            raise ValueError("nothing was watched yet: write `with um.watch():` around what is to be explained")
    if isinstance(of, watch):
        of = of.recording
    if isinstance(of, Recording):
        of = facts_of(of)
    if not isinstance(of, Facts):
        raise TypeError(f"explain takes a watch, or the recording of a trace, not {of!r}")
    return Explanation(found_in(of), of.seconds, of.source, of.costs.source, of.lost)


def _count(number: int) -> str:
    return "nothing found" if not number else "1 finding" if number == 1 else f"{number} findings"
