"""The command line: ``python -m umarray info``, ``demo``, ``explain``, ``trace`` and ``emulate``."""

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
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()  # here, where a full disk can still be told
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit fails again
        # whoever reads has had enough, as `head` does: nothing to tell
        return FAILED if isinstance(error, BrokenPipeError) else _complain(error, FAILED)


def _run(argv: Sequence[str]) -> int:
    if argv[:1] == ["emulate"]:  # before anything here looks for a device; what follows is for the emulator to parse
        from umarray.hipemu import command

        command.main(argv[1:], prog="python -m umarray emulate")
    arguments = _parser().parse_args(argv)
    if arguments.command in ("explain", "trace"):  # of a file: it needs no device
        return _explain(arguments) if arguments.command == "explain" else _convert(arguments)
    try:
        get_driver()
    except UmarrayError as error:
        return _complain(error, FAILED)
    except ValueError as error:  # a setting in the environment
        return _complain(error, MISUSED)
    try:
        return {"info": _info, "calibrate": _calibrate, "demo": _demo}[arguments.command](arguments)
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
    calibrate = commands.add_parser("calibrate", help="measure what moving bytes costs on this device, once")
    calibrate.add_argument("--json", action="store_true", help="as one JSON object")
    calibrate.add_argument("--force", action="store_true", help="measure anew, whatever is stored")
    calibrate.add_argument("--device", metavar="N", type=_index, help="which device; the first one by default")
    explain = commands.add_parser(
        "explain", help="what could be better about what a trace file saw, the costliest first"
    )
    explain.add_argument("trace", metavar="TRACE", help="a file that umarray.trace wrote")
    explain.add_argument("--json", action="store_true", help="as one JSON object")
    trace = commands.add_parser("trace", help="turn a trace file into one for Perfetto: trace convert TRACE OUT.json")
    convert = trace.add_subparsers(dest="action", required=True, metavar="ACTION").add_parser(
        "convert", help="write it in Chrome's format, for ui.perfetto.dev and chrome://tracing"
    )
    convert.add_argument("trace", metavar="TRACE", help="a file that umarray.trace wrote")
    convert.add_argument("out", metavar="OUT", help="the file to write, a .json")
    commands.add_parser("emulate", help="run a command on an emulated AMD device: emulate [options] -- command")
    return parser


def _info(arguments: argparse.Namespace) -> int:
    found = capabilities()
    print(json.dumps(found.as_dict(), indent=2) if arguments.json else found)
    return 0


def _index(text: str) -> int:
    """A device's index, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no device: give its index, 0 for the first")
    return int(text)


def _calibrate(arguments: argparse.Namespace) -> int:
    from umarray.calibration.calibrate import calibrate

    try:
        found = calibrate(arguments.device, force=arguments.force)
    except ValueError as error:  # a device that is not there
        return _complain(error, MISUSED)
    print(json.dumps(found.as_dict(), indent=2) if arguments.json else found)
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from umarray.observe.explain import explain
    from umarray.observe.trace import read_trace

    try:
        found = explain(read_trace(arguments.trace))
    except OSError as error:
        return _complain(error, FAILED)
    except ValueError as error:  # no trace, or of another version
        return _complain(error, MISUSED)
    print(json.dumps(found.as_dict(), indent=2) if arguments.json else found)
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    from umarray.observe.chrome import to_chrome
    from umarray.observe.trace import read_trace

    try:
        if os.path.exists(arguments.out) and os.path.samefile(arguments.trace, arguments.out):
            raise ValueError(f"{arguments.out} is the trace itself, which would be lost: name another file")
        to_chrome(read_trace(arguments.trace), arguments.out)
    except OSError as error:
        return _complain(error, FAILED)
    except ValueError as error:  # no trace, or of another version
        return _complain(error, MISUSED)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from umarray import demo

    return demo.run(arguments)


def _complain(error: BaseException, code: int) -> int:
    print(f"umarray: {' '.join(str(error).split())}", file=sys.stderr)
    return code
