"""The notebook's magics: ``%load_ext umarray``, then ``%umarray`` and ``%%umwatch``."""

from __future__ import annotations

import ast
from typing import Any

from umarray.drivers import get_driver
from umarray.errors import UmarrayError
from umarray.log import warn_once
from umarray.memory import install, installed, uninstall
from umarray.observe import alive
from umarray.observe.explain import explain
from umarray.observe.status import status_of
from umarray.observe.watch import watch
from umarray.places import HOST, Device
from umarray.sizes import format_size, parse_size

USAGE = "%umarray, %umarray on [SIZE] [track], %umarray off or %umarray forget"
NAMES = {"line": ("umarray",), "cell": ("umwatch",)}


class Magics:
    """What the magics of one IPython shell do.

    Notes
    -----
    Bad input is one line that names it, as IPython's own magics have it, and changes nothing.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def umarray(self, line: str) -> None:
        """Show mode, pool, budget and what is alive in this notebook, and what keeps it alive.

        ``%umarray on 8GiB`` installs a pool for the session, ``%umarray on 8GiB track`` one that counts escapes, which
        costs time in every allocation; ``%umarray off`` puts back what was there before. ``%umarray forget`` drops the
        output history and the last error, with the arrays that nothing else keeps.
        """
        word, *rest = line.split() or ["show"]
        actions = {"show": self._show, "on": self._on, "off": self._off, "forget": self._forget}
        if word not in actions or (rest and word != "on"):
            raise _usage(f"{line.strip()!r} is nothing that %umarray knows: write {USAGE}")
        try:
            actions[word](rest)
        except (UmarrayError, ValueError, TypeError) as error:
            raise _usage(" ".join(str(error).split())) from None

    def _show(self, rest: list[str]) -> None:
        _display(status_of(self._shell))

    def _on(self, rest: list[str]) -> None:
        track = "track" in rest
        text = " ".join(word for word in rest if word != "track") or None
        driver = get_driver()
        place = Device(driver.current_device()) if driver.device_count() else HOST
        if text is not None:
            parse_size(text, total=lambda: driver.memory_info(place).total, name="the size")
        already = installed()
        try:
            pool = install(text, track=track)
        except RuntimeError:  # ours says what a program would do
            if already is None or already.closed:
                raise
            raise ValueError(f"a pool with other arguments is on ({already!r}): write %umarray off first") from None
        budget = pool.reserve_of(driver.current_device()).budget
        sizes = f"{format_size(budget.first)}, {format_size(budget.limit)} at most"
        tracked = ", escapes are counted" if track else ""
        print(f"{pool.kind.value} pool on: {sizes}{tracked} (%umarray off ends it)")

    def _off(self, rest: list[str]) -> None:
        pool = installed()
        uninstall()
        if pool is None:
            print("no pool was on")
            return
        left = pool.statistics().current_bytes
        print(f"pool off{f'; {format_size(left)} are in use still and stay valid' if left else ''}")

    def _forget(self, rest: list[str]) -> None:
        found = alive.alive_in(self._shell)
        only = [*found.by(alive.HISTORY), *found.by(alive.ERROR)]
        nbytes, found = sum(one.nbytes for one in only), alive.Found((), True)
        alive.forget(self._shell)
        held = f"{len(only)} arrays, {format_size(nbytes)}, were" if only else "no array was"
        print(f"output history and last error forgotten; {held} kept by nothing else")

    def umwatch(self, line: str, cell: str) -> Any:
        """Run the cell, wait for the device, and print what the cell moved, with what could be done about it."""
        __tracebackhide__ = True
        if line.strip():
            raise _usage(f"%%umwatch takes nothing on its line, not {line.strip()!r}")
        run = _compiled(self._shell, cell)
        watched = watch(sync=True)
        try:
            with watched:
                value = run()
        finally:
            _tell(watched)
        return None if _silenced(cell) else value


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext umarray``."""
    magics = Magics(shell)
    shell.register_magic_function(magics.umarray, "line", "umarray")
    shell.register_magic_function(magics.umwatch, "cell", "umwatch")


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext umarray``: the magics go; a pool that is on stays on, until `umarray.uninstall`."""
    for kind, names in NAMES.items():
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)


def _compiled(shell: Any, cell: str) -> Any:
    """What runs a cell in the notebook's namespace and gives the value of its last expression.

    Notes
    -----
    Nothing of it is IPython's `run_cell`, which would print an error instead of raising it, and show the last value
    before what was watched. So a cell that awaits is a SyntaxError here.
    """
    source = "\n" + shell.transform_cell(cell)  # the magic's own line counts
    name = shell.compile.cache(source, shell.displayhook.prompt_count, raw_code=cell)
    tree = shell.transform_ast(shell.compile.ast_parse(source, name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = shell.compile(tree, name, "exec")
    end = None if last is None else shell.compile(ast.Expression(last.value), name, "eval")

    def run() -> Any:
        __tracebackhide__ = True
        exec(body, shell.user_ns)
        return None if end is None else eval(end, shell.user_ns)

    return run


def _tell(watched: watch) -> None:
    """Show what a watch saw, and what could be done about it; never in the way of the cell's own error."""
    try:
        _display(watched)
        found = explain(watched)
        if found:
            _display(found)
    except Exception as error:
        warn_once("what a cell moved could not be told", error=error)


def _silenced(cell: str) -> bool:
    """Whether the last line ends in a semicolon."""
    from IPython.core import displayhook

    hook: Any = displayhook.DisplayHook
    return bool(hook.semicolon_at_end_of_expression(cell))


def _display(value: Any) -> None:
    from IPython import display

    show: Any = display.display
    show(value)


def _usage(text: str) -> Exception:
    from IPython.core.error import UsageError

    error: Exception = UsageError(text)
    return error
