#include "cost.h"

#include <cstring>

#include "config.h"
#include "counters.h"
#include "device.h"
#include "space.h"

namespace hipemu::cost {
namespace {

struct Card {
  const char* name;
  double fault_us;         // device fault, beside the bytes
  double host_fault_us;    // host fault on a page of a device
  double call_us;          // prefetch call
  double demand_gb;        // on-demand migration, GB/s
  double bus_gb;           // prefetch and copies, host and device
  double back_gb;          // device to host
  double link_gb;          // device to device
};

// h200: measured on the test card: 256 MiB first touched on demand 8.6 GB/s, prefetched 50 GB/s, prefetched back 18
// GB/s, host writes to device-resident pages 4.5 GB/s; a prefetch call costs 70 us before a byte moves. The latency of
// a fault is inside the on-demand rate there, so only a small one is charged apart. NVLink 4: 450 GB/s a direction.
// mi210, mi250x: PCIe 4.0 x16 moves 25 to 28 GB/s of its 32 (AMD's CDNA 2 white paper names the link); Infinity Fabric
// links 50 GB/s each way between two MI210 or MI250X. Fault latency and on-demand rate of ROCm: the order of 20 us a
// fault and of a tenth of the bus, as the field reports for XNACK on MI200; a guess until someone measures it.
// mi300x: PCIe 5.0 x16, 64 GB/s, 50 to 55 in practice; Infinity Fabric 64 GB/s a link.
// mi300a: one memory for both, no migration: only the calls cost.
constexpr Card CARDS[] = {
    {"mi210", 20, 25, 50, 2.8, 26, 26, 50},
    {"mi250x", 20, 25, 50, 2.8, 26, 26, 50},
    {"mi300x", 20, 25, 50, 5.0, 52, 52, 64},
    {"mi300a", 0, 0, 10, 1000, 1000, 1000, 64},
    {"h200", 1, 1, 70, 8.6, 50, 18, 450},
};

const Card& card() {
  static const Card& chosen = []() -> const Card& {
    for (const Card& c : CARDS) {
      if (config().profile == c.name) return c;
    }
    return CARDS[0];
  }();
  return chosen;
}

void charge(int place, double nanoseconds) {
  counters::add(place, counters::modelled_nanoseconds, static_cast<uint64_t>(nanoseconds));
}

}  // namespace

void faulted(int place) { charge(place, 1000 * (place == HOST ? card().host_fault_us : card().fault_us)); }

void prefetch_call(int place) { charge(place, 1000 * card().call_us); }

void transfer(int from, int to, size_t bytes, Cause cause) {
  const double n = static_cast<double>(bytes);
  double rate = to == HOST ? card().back_gb : from == HOST ? card().bus_gb : card().link_gb;
  if (cause == fault && card().demand_gb < rate) rate = card().demand_gb;
  charge(cause == eviction ? from : to, n / rate);  // bytes over GB/s are nanoseconds
}

}  // namespace hipemu::cost
