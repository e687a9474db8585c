#include "faults.h"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

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

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& previous = before[number];
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    signal(number, SIG_DFL);  // the access is repeated on return, and ends the process
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

// What the preloaded sigaction asks: a handler set by the program goes behind ours where ours is in place.
bool put_behind(int number, const struct sigaction* act, struct sigaction* old) {
  struct sigaction now;
  if (number != SIGSEGV && number != SIGBUS && number != SIGFPE && number != SIGILL) return false;
  if (is_ours(*act) || sigaction(number, nullptr, &now) != 0 || !is_ours(now)) return false;
  const struct sigaction asked = *act;
  if (old) *old = before[number];
  before[number] = asked;
  return true;
}

void hook() {
  void* const symbol = dlsym(RTLD_DEFAULT, "hipemu_signal_hook");
  if (symbol) *static_cast<bool (**)(int, const struct sigaction*, struct sigaction*)>(symbol) = put_behind;
}

void install(int number) {
  struct sigaction now;
  if (sigaction(number, nullptr, &now) == 0 && is_ours(now)) return;
  const std::lock_guard<std::mutex> held(install_mutex);
  if (sigaction(number, nullptr, &now) == 0 && is_ours(now)) return;
  before[number] = now;
  struct sigaction ours = {};
  ours.sa_sigaction = handle;
  // NODEFER: a fault while a fault is served is an error to be seen, not a hang.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
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
