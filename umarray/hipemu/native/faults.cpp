#include "faults.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "abi.h"
#include "residency.h"
#include "space.h"
#include "stream.h"
#include "worker.h"

namespace hipemu::faults {
namespace {

std::mutex install_mutex;
struct sigaction before[NSIG];

// As the kernel lays it out: what the wrapped sigaction (preload/signals.cpp) is not asked about.
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

void end_with(int number) {
  const KernelAction by_default{};
  syscall(SYS_rt_sigaction, number, &by_default, nullptr, sizeof by_default.mask);
}

bool was_sent(const siginfo_t* info) { return info->si_code <= 0; }  // by kill or raise: nothing will be repeated

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction previous = before[number];
  if (previous.sa_flags & SA_RESETHAND) before[number] = {};
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler == SIG_IGN && was_sent(info)) {
    return;
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    end_with(number);  // the access is repeated on return, and ends the process
    if (was_sent(info)) raise(number);
  } else {
    previous.sa_handler(number);
  }
}

bool serve(void* address, bool write) {
  size_t offset;
  int place;
  if (!Space::get().find(address, &offset, &place)) return false;
  const int worker = streams::worker_device();
  if (place == HOST && worker != HOST) return residency::borrow(worker, offset, write);
  return residency::fault(place, offset, write);
}

void handle(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool write = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
  if (was_sent(info)) return pass_on(number, info, context);
  if (number == SIGSEGV && serve(info->si_addr, write)) {
    errno = saved;
    return;
  }
  if (streams::worker_device() != HOST) {
    if (number == SIGFPE || number == SIGILL) worker::abandon_text(hipErrorLaunchFailure, strsignal(number));
    worker::abandon(hipErrorIllegalAddress, info->si_addr);
  }
  pass_on(number, info, context);
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == handle;
}

bool in_place(int number) {
  KernelAction now{};
  const bool known = syscall(SYS_rt_sigaction, number, nullptr, &now, sizeof now.mask) == 0;
  return known && reinterpret_cast<void*>(now.handler) == reinterpret_cast<void*>(handle);
}

// What the preloaded sigaction asks: where ours is in place, the program's handlers are set, and read, behind it.
bool put_behind(int number, const struct sigaction* act, struct sigaction* old) {
  if (number != SIGSEGV && number != SIGBUS && number != SIGFPE && number != SIGILL) return false;
  if ((act && is_ours(*act)) || !in_place(number)) return false;
  const struct sigaction asked = act ? *act : before[number];
  if (old) *old = before[number];
  before[number] = asked;
  return true;
}

void hook() {
  void* const symbol = dlsym(RTLD_DEFAULT, "hipemu_signal_hook");
  if (symbol) *static_cast<bool (**)(int, const struct sigaction*, struct sigaction*)>(symbol) = put_behind;
}

void install(int number) {
  if (in_place(number)) return;
  const std::lock_guard<std::mutex> held(install_mutex);
  if (in_place(number)) return;
  struct sigaction ours = {};
  struct sigaction theirs = {};
  ours.sa_sigaction = handle;
  // NODEFER: a fault while a fault is served is an error to be seen, not a hang.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  if (sigaction(number, nullptr, &theirs) == 0 && !is_ours(theirs)) before[number] = theirs;
  sigaction(number, &ours, nullptr);
}

}  // namespace

void watch() {
  static const bool hooked = (hook(), true);
  (void)hooked;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) install(number);
}

void finish_operation(int device) { residency::give_back_borrowed(device); }

}  // namespace hipemu::faults
