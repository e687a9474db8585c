#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "config.h"

namespace hipemu::device {
namespace {

// From AMD's and NVIDIA's data sheets; `h200` describes the test card's memory system as if it were a HIP device.
constexpr Profile PROFILES[] = {
    {"mi210", "AMD Instinct MI210", "gfx90a", 910, 9, 0, 104, 1700000, 1600000, 4096, 8 << 20, false},
    {"mi250x", "AMD Instinct MI250X", "gfx90a", 910, 9, 0, 110, 1700000, 1600000, 4096, 8 << 20, false},
    {"mi300x", "AMD Instinct MI300X", "gfx942", 940, 9, 4, 304, 2100000, 2600000, 8192, 4 << 20, false},
    {"mi300a", "AMD Instinct MI300A", "gfx942", 940, 9, 4, 228, 2100000, 2600000, 8192, 4 << 20, true},
    {"h200", "Emulated H200-like device", "gfx90a", 910, 9, 0, 132, 1980000, 3201000, 6144, 50 << 20, false},
};

thread_local int this_device = 0;

std::mutex peers_mutex;
bool peers[8][8];

}  // namespace

const Profile& profile() {
  static const Profile& chosen = [&]() -> const Profile& {
    for (const Profile& p : PROFILES) {
      if (config().profile == p.name) return p;
    }
    std::fprintf(stderr, "hipemu: HIPEMU_PROFILE=%s: wanted mi210, mi250x, mi300x, mi300a or h200\n",
                 config().profile.c_str());
    std::_Exit(2);
  }();
  return chosen;
}

int count() { return config().devices; }
bool valid(int device) { return device >= 0 && device < count(); }
int current() { return this_device; }
void set_current(int device) { this_device = device; }

bool peer_enabled(int from, int to) {
  const std::lock_guard<std::mutex> held(peers_mutex);
  return from == to || peers[from][to];
}

hipError_t set_peer(int from, int to, bool enable) {
  const std::lock_guard<std::mutex> held(peers_mutex);
  if (peers[from][to] == enable) return enable ? hipErrorPeerAccessAlreadyEnabled : hipErrorPeerAccessNotEnabled;
  peers[from][to] = enable;
  return hipSuccess;
}

}  // namespace hipemu::device
