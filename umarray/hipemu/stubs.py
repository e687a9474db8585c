"""Stand-ins for functions of the ROCm libraries that are not emulated: each says its name once and returns an error.

They are weak symbols: where `native/libraries` has the function, its own is linked instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["generate"]

# The "not implemented" or "not supported" status of each library, so that callers raise their own error.
STATUS = {
    "librocsolver.so.0": 2,
    "librocblas.so.0": 2,
    "libhipblas.so.0": 7,
    "libhipfft.so": 14,
    "librocfft.so.0": 1,
    "librccl.so.1": 3,
    "libhiprand.so.1": 1000,
    "libhipsparse.so.0": 10,
    "libroctx64.so.1": 0,
}

# What is answered in earnest: versions, texts, and marks for a profiler that is not there.
ANSWERS = {
    "ncclGetErrorString": "const char* ncclGetErrorString(int code) "
    '{ (void)code; return "RCCL is not emulated (hipemu)"; }',
    "ncclGetVersion": "int ncclGetVersion(int* v) { *v = 21003; return 0; }",
    "hipfftGetVersion": "int hipfftGetVersion(int* v) { *v = 10010; return 0; }",
    "hiprandGetVersion": "int hiprandGetVersion(int* v) { *v = 200000; return 0; }",
    "roctxMarkA": "void roctxMarkA(const char* text) { (void)text; }",
    "roctxRangePushA": "int roctxRangePushA(const char* text) { (void)text; return 0; }",
    "roctxRangePop": "int roctxRangePop(void) { return 0; }",
}

HEAD = """\
#include <stdio.h>
static int refuse(const char* name, char* said, int status) {
  if (!*said) { *said = 1; fprintf(stderr, "hipemu: %s is not emulated\\n", name); }
  return status;
}
"""


def generate(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield ``(library name, C source)`` for each list of function names in a folder."""
    for listing in sorted(folder.glob("*.txt")):
        soname = listing.name.removesuffix(".txt")
        lines = [HEAD]
        for name in listing.read_text().split():
            if name in ANSWERS:
                lines.append(ANSWERS[name])
            else:
                status = STATUS[soname]
                lines.append(
                    f"int {name}(void) __attribute__((weak)); "
                    f'int {name}(void) {{ static char said; return refuse("{name}", &said, {status}); }}'
                )
        if len(lines) == 1:
            lines = ["static int unused __attribute__((unused));"]
        yield soname, "\n".join(lines) + "\n"
