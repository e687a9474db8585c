#!/bin/bash
# Runs the emulator's tests on a build with a sanitizer: tests/hipemu/sanitize.sh address|undefined|thread [pytest argument ...]
#
# The tests run their programs in child processes: a report ends the child with an exit code that no test expects, and
# is in what it says. Kernels, CuPy and Python are not instrumented. Address: our handlers keep SIGSEGV and its kin, which
# are page faults here; leaks are not looked for, since what lives as long as the process is never freed.
set -euo pipefail
cd "$(dirname "$0")/../.."
which=${1:?address, undefined or thread}
shift
cxx=${HIPEMU_CXX:-g++}
left_out=()
signals="handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:use_sigaltstack=0"
case $which in
address)
    flags="-fsanitize=address -fno-omit-frame-pointer"
    runtime=$("$cxx" -print-file-name=libasan.so)
    export ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:$signals"
    ;;
undefined)
    flags="-fsanitize=undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined"
    runtime=
    export UBSAN_OPTIONS="print_stacktrace=1"
    ;;
thread)
    flags="-fsanitize=thread"
    runtime=$("$cxx" -print-file-name=libtsan.so)
    export TSAN_OPTIONS="exitcode=66:report_signal_unsafe=0:$signals"
    # This sanitizer's own sigaction comes before ours, so that a program's handler cannot come behind.
    left_out=(--deselect "tests/hipemu/test_paging.py::test_a_handler_that_the_program_sets_comes_behind_ours[mprotect]")
    ;;
*)
    echo "no sanitizer $which: address, undefined or thread" >&2
    exit 2
    ;;
esac
export HIPEMU_CXXFLAGS="$flags" HIPEMU_TEST_PRELOAD="$runtime"
exec "${PYTHON:-python}" -m pytest -q -p no:cacheprovider "${left_out[@]}" "${@:-tests/hipemu}"
