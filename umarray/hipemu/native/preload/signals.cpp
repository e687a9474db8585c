// Keeps the runtime's page-fault handler the first one: a handler that the program sets later (faulthandler does) comes
// behind it instead of in its place.
//
// sigaction is what programs set handlers with; the runtime, once loaded, says here how to. Nothing in this file may
// lock or allocate: handlers call sigaction too.
#include <dlfcn.h>
#include <signal.h>

using SigAction = int(int, const struct sigaction*, struct sigaction*);

namespace {
SigAction* const real = reinterpret_cast<SigAction*>(dlsym(RTLD_NEXT, "sigaction"));
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Set by the runtime; true when it has taken the request.
EXPORTED bool (*hipemu_signal_hook)(int, const struct sigaction*, struct sigaction*);
bool (*hipemu_signal_hook)(int, const struct sigaction*, struct sigaction*) = nullptr;

EXPORTED int sigaction(int number, const struct sigaction* act, struct sigaction* old) noexcept {
  if (act && hipemu_signal_hook && hipemu_signal_hook(number, act, old)) return 0;
  static SigAction* const late = reinterpret_cast<SigAction*>(dlsym(RTLD_NEXT, "sigaction"));
  return (real ? real : late)(number, act, old);
}
