// Keeps the runtime's page-fault handler the first one: a handler that the program sets later (faulthandler does) comes
// behind it instead of in its place.
//
// sigaction and signal are what programs set handlers with; the runtime, once loaded, says here how to. Nothing in this
// file may lock or allocate: handlers call sigaction too.
#include <dlfcn.h>
#include <signal.h>

using SigAction = int(int, const struct sigaction*, struct sigaction*);

namespace {
SigAction* const real = reinterpret_cast<SigAction*>(dlsym(RTLD_NEXT, "sigaction"));
sighandler_t (*const real_signal)(int, sighandler_t) =
    reinterpret_cast<sighandler_t (*)(int, sighandler_t)>(dlsym(RTLD_NEXT, "signal"));
}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Set by the runtime; true when it has taken the request.
EXPORTED bool (*hipemu_signal_hook)(int, const struct sigaction*, struct sigaction*);
bool (*hipemu_signal_hook)(int, const struct sigaction*, struct sigaction*) = nullptr;

EXPORTED int sigaction(int number, const struct sigaction* act, struct sigaction* old) noexcept {
  if (hipemu_signal_hook && hipemu_signal_hook(number, act, old)) return 0;
  static SigAction* const late = reinterpret_cast<SigAction*>(dlsym(RTLD_NEXT, "sigaction"));
  return (real ? real : late)(number, act, old);
}

EXPORTED sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction act = {};
  struct sigaction old = {};
  act.sa_handler = handler;
  act.sa_flags = SA_RESTART;
  if (hipemu_signal_hook && hipemu_signal_hook(number, &act, &old)) return old.sa_handler;
  static sighandler_t (*const late)(int, sighandler_t) =
      reinterpret_cast<sighandler_t (*)(int, sighandler_t)>(dlsym(RTLD_NEXT, "signal"));
  return (real_signal ? real_signal : late)(number, handler);
}
