"""The command line: ``python -m umarray info``, ``python -m umarray demo`` and ``python -m umarray emulate``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from umarray._version import __version__
from umarray.drivers import get_driver
from umarray.drivers.capabilities import capabilities
from umarray.errors import UmarrayError

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        0, or 1 where something of umarray's failed, or 2 for bad usage, which includes a bad setting in the
        environment. Either prints one line on the standard error, and no traceback.

    Notes
    -----
    ``emulate`` does not return: the command that it runs takes the place of this process.
    """
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads has had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit fails again
        return FAILED


def _run(argv: Sequence[str]) -> int:
    if argv[:1] == ["emulate"]:  # before anything here looks for a device; what follows is for the emulator to parse
        from umarray.hipemu import command

        command.main(argv[1:], prog="python -m umarray emulate")
    arguments = _parser().parse_args(argv)
    try:
        get_driver()
    except UmarrayError as error:
        return _complain(error, FAILED)
    except ValueError as error:  # a setting in the environment
        return _complain(error, MISUSED)
    try:
        return _info(arguments) if arguments.command == "info" else _demo(arguments)
    except UmarrayError as error:
        return _complain(error, FAILED)


def _parser() -> argparse.ArgumentParser:
    from umarray import demo  # the demonstration's arguments are its own; it imports what it needs when it runs

    parser = argparse.ArgumentParser(prog="python -m umarray", description="umarray: managed memory for CuPy.")
    parser.add_argument("--version", action="version", version=f"umarray {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="the mode of this process and why, devices, versions, libraries, settings")
    info.add_argument("--json", action="store_true", help="as one JSON object")
    demo.add_arguments(commands.add_parser("demo", help="train a small network through umarray and show what moved"))
    commands.add_parser("emulate", help="run a command on an emulated AMD device: emulate [options] -- command")
    return parser


def _info(arguments: argparse.Namespace) -> int:
    found = capabilities()
    print(json.dumps(found.as_dict(), indent=2) if arguments.json else found)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from umarray import demo

    return demo.run(arguments)


def _complain(error: BaseException, code: int) -> int:
    print(f"umarray: {' '.join(str(error).split())}", file=sys.stderr)
    return code
