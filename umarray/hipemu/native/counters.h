// What happened to pages, by device; row 0 is the host's. Read from Python (umarray/hipemu/telemetry.py).
#pragma once

#include <atomic>
#include <cstdint>

namespace hipemu::counters {

// In the order in which the spy interface hands them out.
enum Name : int {
  faults,                 // touches that had to wait: by this device, or by the host
  new_pages,              // pages that came to be here, with no copy made
  bytes_to_device,        // host to this device
  bytes_to_host,          // this device to host
  bytes_between_devices,  // another device to this one
  prefetched_bytes,       // of the three above: moved here by a prefetch
  evicted_bytes,          // of those from this device to the host: to make room
  duplicated_bytes,       // copies made here beside another (read-mostly)
  mapped_bytes,           // made reachable from here without moving (accessed-by, preferred location)
  dropped_bytes,          // copies given up here: by a write elsewhere, or to make room
  modelled_nanoseconds,   // what the above would have cost on the card of the profile
  COUNT,
};

constexpr int ROWS = 9;
extern std::atomic<uint64_t> values[ROWS][COUNT];

inline void add(int place, Name name, uint64_t amount) {
  values[place + 1][name].fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace hipemu::counters
