"""Arrays made in an epoch and alive at its end: they keep memory, and the next epoch must carve around them."""

from __future__ import annotations

from umarray.observe.facts import Made, Named
from umarray.observe.findings.finding import Case, Finding, Value
from umarray.observe.subjects import Subject


def find(case: Case) -> list[Finding]:
    """One finding for a line whose arrays escaped."""
    by_line: dict[str, list[int]] = {}
    epochs: dict[str, set[str]] = {}
    for one in case.facts.escapes:
        figures = by_line.setdefault(one.line, [0, 0])
        figures[0] += one.count
        figures[1] += one.nbytes
        epochs.setdefault(one.line, set()).add(one.epoch)
    return [_finding(case, line, count, nbytes, epochs[line]) for line, (count, nbytes) in by_line.items()]


def _finding(case: Case, line: str, count: int, nbytes: int, epochs: set[str]) -> Finding:
    blocks = [one for one in case.facts.made if one.line == line]
    names = [one for one in case.facts.named if one.name and any(_inside(one, block) for block in blocks)]
    assigned = next((one.name for one in blocks if one.name), "")
    held, shape = (names[-1].name, names[-1].shape) if names else ("", None)
    name = assigned or held
    size = nbytes // count
    subject = Subject(name, line, 0, size, shape, names[-1].dtype if names else "", count)
    evidence: dict[str, Value] = {"arrays": count, "escaped bytes": nbytes, "epochs": len(epochs)}
    if held and held != assigned:
        evidence["held by"] = held
    return Finding(
        "escapes",
        subject,
        "Arrays of this line outlive the epoch in which they are made.",
        f"del {held or name or 'x'}  # before the epoch ends; or make it in `with pool.persistent():`",
        saving_bytes=nbytes,
        evidence=evidence,
    )


def _inside(named: Named, block: Made) -> bool:
    return block.gone is None and block.address <= named.address < block.stop
