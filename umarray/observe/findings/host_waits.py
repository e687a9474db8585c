"""Host work that waits for the device while the device then waits for the host: they take turns."""

from __future__ import annotations

from umarray.observe.facts import View
from umarray.observe.findings.finding import Case, Finding
from umarray.observe.subjects import NOBODY, Subject

_TURNS = 4  # fewer are no loop
_SHARE = 0.1  # of the seconds watched


def find(case: Case) -> list[Finding]:
    """One finding for a line whose host views wait for the device, and then keep it idle while the host works."""
    by_line: dict[str, list[View]] = {}
    for view in case.facts.views:
        if view.waited > 0:
            by_line.setdefault(view.line, []).append(view)
    found = []
    for line, views in by_line.items():
        waited = sum(view.waited for view in views)
        worked = sum(_work(view) for view in views)
        saving = sum(min(view.waited, _work(view)) for view in views)
        if len(views) >= _TURNS and saving >= _SHARE * case.facts.seconds:
            found.append(_finding(case, line, views, waited, worked, saving))
    return found


def _work(view: View) -> float:
    """Seconds in which the host worked in the view while nothing was queued."""
    return max(0.0, view.until - view.time - view.waited)


def _finding(case: Case, line: str, views: list[View], waited: float, worked: float, saving: float) -> Finding:
    first = views[0]
    named = next((one for one in case.facts.named if one.address <= first.address < one.stop and one.name), None)
    subject = NOBODY
    if named is not None:
        subject = Subject(named.name, "", named.address, named.nbytes, named.shape, named.dtype)
    return Finding(
        "the host and the device take turns",
        subject if named is not None else None,
        f"The host view at {line or 'an unknown line'} waits for the device, which then waits for the host.",
        "with um.Pipeline(items, prepare, compute, like=...) as pipeline:  # prepares while the device computes",
        waited + worked,
        saving,
        modelled=False,
        evidence={"views": len(views), "waited seconds": waited, "host work seconds": worked},
    )
