"""``python -m umarray.hipemu [options] -- command``: run a command on the emulated device."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import build, machine

__all__ = ["main"]


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s [options] -- command [argument ...]",
        description="Run a command with a HIP device emulated on the CPU; its exit code is passed on.",
    )
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="1 to 8 (default 1)")
    parser.add_argument("--memory", default="4GiB", metavar="SIZE", help="of each device (default 4GiB)")
    parser.add_argument("--page", default="64KiB", metavar="SIZE", help="of a page that migrates (default 64KiB)")
    parser.add_argument("--xnack", choices=("on", "off"), default="on", help="devices fault and migrate (default on)")
    parser.add_argument("--profile", default="mi210", metavar="CARD", help="one of " + ", ".join(machine.PROFILES))
    parser.add_argument("--rocm", metavar="N", help="5 or 7 (default: what the installed CuPy wheel was built for)")
    parser.add_argument("--strict", action="store_true", help="answer as ROCm 5 even where CuPy fails on it")
    parser.add_argument("--blocking-prefetch", action="store_true", help="prefetch waits, as in ROCm 6.1")
    parser.add_argument("--report", action="store_true", help="print the counters at the end")
    parser.add_argument("--trace", metavar="FILE", help="write a line for each API call")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m umarray.hipemu") -> NoReturn:
    """Replace this process by the command, running on the emulated device; so exit code and signals are the command's.

    Exit code 2 says that a setting is wrong or that nothing could be built, 127 that there is no such command;
    everything else is the command's own.
    """
    parser = _parser(prog)
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("no command: put it after --")
    try:
        settings = machine.environment(
            devices=given.devices,
            memory=given.memory,
            page=given.page,
            xnack=given.xnack == "on",
            profile=given.profile,
            rocm=given.rocm,
            strict=given.strict,
            blocking_prefetch=given.blocking_prefetch,
            report=given.report,
            trace=given.trace,
        )
    except ValueError as error:
        parser.error(str(error))
    except build.BuildError as error:
        print(f"hipemu: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    try:
        os.execvpe(command[0], command, settings)
    except OSError as error:
        print(f"hipemu: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        raise SystemExit(127) from None
