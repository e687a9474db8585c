#include "worker.h"

#include <signal.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "errors.h"
#include "faults.h"

namespace hipemu::worker {
namespace {

thread_local sigjmp_buf escape;
thread_local volatile bool inside = false;
thread_local int crash_code = 0;
thread_local char crash_text[512];
thread_local std::string kernel;
thread_local void* signal_stack = MAP_FAILED;
constexpr size_t SIGNAL_STACK_BYTES = 64 << 10;

}  // namespace

std::string& running() { return kernel; }

void prepare() {
  // Signals of the program are for its own threads.
  sigset_t all;
  sigfillset(&all);
  for (const int mine : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, mine);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  signal_stack = mmap(nullptr, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = SIGNAL_STACK_BYTES;
  if (signal_stack != MAP_FAILED) sigaltstack(&stack, nullptr);
}

void finish() {
  if (signal_stack == MAP_FAILED) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(signal_stack, SIGNAL_STACK_BYTES);
}

void run(int device, const std::function<void()>& work) {
  faults::watch();
  // No signal mask is saved: the fault handler blocks none.
  if (sigsetjmp(escape, 0) == 0) {
    inside = true;
    try {
      work();
    } catch (const std::exception& error) {  // of a library's function; a kernel throws none
      errors::stick(hipErrorLaunchFailure, (kernel.empty() ? "a copy" : kernel) + ": " + error.what());
    }
    inside = false;
  } else {
    inside = false;
    const std::string who = kernel.empty() ? "a copy" : "kernel " + kernel;
    const std::string where = " (device " + std::to_string(device) + ")";
    errors::stick(static_cast<hipError_t>(crash_code), who + ": " + crash_text + where);
  }
  kernel.clear();
  faults::finish_operation(device);
}

void abandon(int code, const void* address) {
  if (!inside) return;
  crash_code = code;
  std::snprintf(crash_text, sizeof crash_text, "touched %p", address);
  siglongjmp(escape, 1);
}

void abandon_text(int code, const char* what) {
  if (!inside) return;
  crash_code = code;
  std::snprintf(crash_text, sizeof crash_text, "%s", what);
  siglongjmp(escape, 1);
}

void fail(int code, const std::string& why) {
  if (!inside) std::abort();
  crash_code = code;
  std::snprintf(crash_text, sizeof crash_text, "%s", why.c_str());
  siglongjmp(escape, 1);
}

}  // namespace hipemu::worker
