"""What iterating over a pipeline gives."""

from __future__ import annotations

import weakref
from typing import Any, final

from umarray.pipeline.outbox import Outbox, Ticket
from umarray.pipeline.run import Run
from umarray.progress import Bar


@final
class Results:
    """The results of one iteration, in order.

    Notes
    -----
    For one thread. When it is dropped, as after a `break`, the iteration's threads end.
    """

    def __init__(self, run: Run, outbox: Outbox | None, bar: Bar) -> None:
        self._run = run
        self._outbox = outbox
        self._bar = bar
        self._index = 0
        self._pending: Ticket | None = None
        self._dropped = weakref.finalize(self, _drop, run, bar)
        self._dropped.atexit = False

    def __iter__(self) -> Results:
        return self

    def __next__(self) -> Any:
        result = self._step() if self._outbox is None else self._step_out(self._outbox)
        self._bar.update()
        return result

    def _step(self) -> Any:
        try:
            return self._run.step()
        except BaseException:
            self._bar.close()
            if self._run.finished:
                self._dropped.detach()  # Python would lose a Ctrl-C that comes within a finaliser
            raise

    def _step_out(self, outbox: Outbox) -> Any:
        """Send one result on its way, then fetch the one before."""
        while True:
            before, self._pending = self._pending, None
            try:
                result = self._step()
            except StopIteration:
                if before is None:
                    raise
                return before.fetch()
            self._pending = outbox.send(result, self._index)
            self._index += 1
            del result
            if before is not None:
                return before.fetch()


def _drop(run: Run, bar: Bar) -> None:
    run.stop()  # takes no lock: this may run inside the garbage collector
    bar.close()
