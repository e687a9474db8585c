#include "worker.h"

#include <sys/mman.h>
#include <signal.h>

#include <cstdio>

#include "errors.h"
#include "faults.h"

namespace hipemu::worker {
namespace {

thread_local sigjmp_buf escape;
thread_local volatile bool inside = false;
thread_local int crash_code = 0;
thread_local const void* crash_address = nullptr;
thread_local std::string kernel;

}  // namespace

std::string& running() { return kernel; }

void prepare() {
  // Signals of the program are for its own threads.
  sigset_t all;
  sigfillset(&all);
  for (const int mine : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, mine);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  constexpr size_t bytes = 64 << 10;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = bytes;
  if (memory != MAP_FAILED) sigaltstack(&stack, nullptr);
}

void run(int device, const std::function<void()>& work) {
  faults::watch();
  if (sigsetjmp(escape, 1) == 0) {
    inside = true;
    work();
    inside = false;
  } else {
    inside = false;
    char text[256];
    std::snprintf(text, sizeof text, "%s%s%s touched %p on device %d", kernel.empty() ? "a copy" : "kernel ",
                  kernel.c_str(), "", crash_address, device);
    errors::stick(static_cast<hipError_t>(crash_code), text);
    kernel.clear();
  }
  faults::finish_operation(device);
}

void abandon(int code, const void* address) {
  if (!inside) return;
  crash_code = code;
  crash_address = address;
  siglongjmp(escape, 1);
}

}  // namespace hipemu::worker
