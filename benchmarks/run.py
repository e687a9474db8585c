"""All benchmarks, one after another, each in a process of its own; one results file.

``python -m benchmarks.run [--only NAME ...] [--quick] [--save] [--json]``. What fails is told and does not stop the
others; then the exit code is 1. On the emulated device run it under ``python -m umarray emulate --``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, header, parser, save
from umarray import hipemu
from umarray.progress import bar

FOLDER = Path(__file__).parent
NAMES = ("matmul", "attention", "embedding", "scopes", "epochs", "allocators", "pipeline", "oversubscribe")
EMULATED_ONLY = {"oversubscribe": {"HIPEMU_MEMORY": str(64 << 20)}}
"""Those that run on the emulated device only, and what they need of it: a small memory to go beyond."""
SECONDS = 300.0  # that one benchmark may take

Result = dict[str, Any]


def run_one(name: str, options: Sequence[str], seconds: float) -> Result:
    """The result of one benchmark; where it gave none, a dict whose "failed" says why."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    child = subprocess.Popen(
        command,
        cwd=FOLDER.parent,
        env=os.environ | EMULATED_ONLY.get(name, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that what it starts can be ended with it
    )
    try:
        out, err = child.communicate(timeout=seconds)
    except BaseException as error:
        _end(child)
        if isinstance(error, subprocess.TimeoutExpired):
            return {"benchmark": name, "failed": f"not done after {seconds:g} s"}
        raise
    if child.returncode:
        return {"benchmark": name, "failed": _reason(child.returncode, err)}
    try:
        result: Result = json.loads(out)
    except ValueError:
        return {"benchmark": name, "failed": f"its output is no JSON: {out[:200]!r}"}
    return result


def _end(child: subprocess.Popen[str]) -> None:
    """End a benchmark and all that it started, and wait for it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.communicate()


def _reason(code: int, err: str) -> str:
    """The last line that a benchmark wrote to its error stream, or its exit code."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {code}"


def run_all(names: Sequence[str], options: Sequence[str], seconds: float, told: Any = None) -> Result:
    """Run benchmarks and gather what came of them; a line on each goes to `told`, the error stream by default.

    Returns
    -------
    dict
        "results", a list; "failed" and "skipped", name to reason; "seconds" that each took.
    """
    gathered: Result = {"results": [], "failed": {}, "skipped": {}, "seconds": {}}
    with bar(len(names), "benchmarks", unit="file") as progress:
        for name in names:
            progress.say(name)
            if name in EMULATED_ONLY and not hipemu.active():
                gathered["skipped"][name] = "on the emulated device only"
            else:
                start = time.perf_counter()
                result = run_one(name, options, seconds)
                gathered["seconds"][name] = round(time.perf_counter() - start, 1)
                if "failed" in result:
                    gathered["failed"][name] = result["failed"]
                else:
                    gathered["results"].append(result)
            print(_line(name, gathered), file=sys.stderr if told is None else told, flush=True)
            progress.update()
    return gathered


def _line(name: str, gathered: Mapping[str, Any]) -> str:
    if name in gathered["skipped"]:
        return f"{name}: skipped, {gathered['skipped'][name]}"
    took = f"{gathered['seconds'][name]:g} s"
    if name in gathered["failed"]:
        return f"{name}: FAILED after {took}: {gathered['failed'][name]}"
    result = gathered["results"][-1]
    not_here = "".join(f"; not here: {one['what']} ({one['why']})" for one in result.get("skipped", ()))
    return f"{name}: {len(result['rows'])} rows in {took}{not_here}"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}")
    options.add_argument("--seconds", type=float, default=SECONDS, help="that one benchmark may take")
    arguments = options.parse_args()
    if arguments.save and arguments.quick:
        raise SystemExit("--save and --quick: a quick run measures nothing that is worth keeping")
    passed = ["--quick"] if arguments.quick else []
    if arguments.repetitions is not None:
        passed += ["--repetitions", str(arguments.repetitions)]
    chosen = [name for name in NAMES if not arguments.only or name in arguments.only]
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    gathered = run_all(chosen, passed, arguments.seconds)
    result = {"benchmark": "all", "quick": arguments.quick, "measured": start, "header": header()} | gathered
    if arguments.json:
        print(json.dumps(result, indent=2))
    if arguments.save:
        print(f"saved {save(result, 'all', RESULTS).relative_to(FOLDER.parent)}", file=sys.stderr)
    if gathered["failed"]:
        print(f"failed: {', '.join(gathered['failed'])}", file=sys.stderr)
    return 1 if gathered["failed"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
