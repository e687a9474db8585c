"""Stand-ins for functions of the ROCm libraries that are not emulated: each says its name once and returns an error.

They are weak symbols: where `native/libraries` has the function, its own is linked instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Stub", "generate"]

# The "not implemented" or "not supported" status of each library, so that callers raise their own error.
STATUS = {
    "librocsolver": 2,
    "librocblas": 2,
    "libhipblas": 7,
    "libhipfft": 14,
    "librocfft": 1,
    "librccl": 3,
    "libhiprand": 1000,
    "libhipsparse": 10,
}

# What is answered in earnest: versions (those of ROCm 5.0 and 7.0), texts, and marks for a profiler that is not there.
ANSWERS = {
    "ncclGetErrorString": "const char* ncclGetErrorString(int code) "
    '{ (void)code; return "RCCL is not emulated (hipemu)"; }',
    "ncclGetVersion": "int ncclGetVersion(int* v) { *v = HIPEMU_ROCM == 5 ? 21003 : 22606; return 0; }",
    "hipfftGetVersion": "int hipfftGetVersion(int* v) { *v = HIPEMU_ROCM == 5 ? 10010 : 10020; return 0; }",
    "hiprandGetVersion": "int hiprandGetVersion(int* v) { *v = HIPEMU_ROCM == 5 ? 200000 : 300000; return 0; }",
    "roctxMarkA": "void roctxMarkA(const char* text) { (void)text; }",
    "roctxRangePushA": "int roctxRangePushA(const char* text) { (void)text; return 0; }",
    "roctxRangePop": "int roctxRangePop(void) { return 0; }",
    "roctracer_start": "void roctracer_start(void) {}",
    "roctracer_stop": "void roctracer_stop(void) {}",
}

HEAD = """\
#include <stdio.h>
static int refuse(const char* name, char* said, int status) {
  if (!*said) { *said = 1; fprintf(stderr, "hipemu: %s is not emulated\\n", name); }
  return status;
}
"""


@dataclass(frozen=True)
class Stub:
    """One library of stand-ins."""

    soname: str
    source: str
    """C."""
    script: str
    """The linker's version script; empty where the library's symbols have no versions."""

    @property
    def name(self) -> str:
        """The library's name without its version, such as ``"libhipblas"``."""
        return _name(self.soname)


def _name(soname: str) -> str:
    return soname.split(".")[0]


def generate(folder: Path) -> Iterator[Stub]:
    """Yield a library for each list in a folder: function names, ``name@VERSION`` where callers ask for a version."""
    for listing in sorted(folder.glob("*.txt")):
        soname = listing.name.removesuffix(".txt")
        lines, versions = [HEAD], defaultdict[str, list[str]](list)
        for symbol in listing.read_text().split():
            name, _, version = symbol.partition("@")
            versions[version].append(name)
            if name in ANSWERS:
                lines.append(ANSWERS[name])
            else:
                status = STATUS[_name(soname)]
                lines.append(
                    f"int {name}(void) __attribute__((weak)); "
                    f'int {name}(void) {{ static char said; return refuse("{name}", &said, {status}); }}'
                )
        if len(lines) == 1:
            lines = ["static int unused __attribute__((unused));"]
        script = [f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items() if version]
        yield Stub(soname, "\n".join(lines) + "\n", "".join(script))
