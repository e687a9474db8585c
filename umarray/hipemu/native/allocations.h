// What has been allocated: device, managed and pinned memory, and how much of each device is taken.
//
// Every allocation has whole pages of its own, so that no prefetch or advice can reach a neighbour's. Device memory is
// counted in 4 KiB, as ROCm does; a device is full when that and the managed pages that live there reach its size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi.h"

namespace hipemu {

enum class Kind { device, managed, pinned };

struct Allocation {
  size_t offset = 0;
  size_t bytes = 0;    // as asked
  size_t rounded = 0;  // in whole pages
  Kind kind = Kind::device;
  int device = 0;  // current when it was made
  unsigned flags = 0;
  uint64_t id = 0;

  bool holds(size_t at, size_t length) const { return at >= offset && length <= bytes - (at - offset); }
};

namespace allocations {

hipError_t make(Kind kind, size_t bytes, int device, unsigned flags, void** pointer);

// The pointer must be the start of an allocation; pinned memory and the other two are freed by different calls.
hipError_t release(void* pointer, bool pinned);

// The allocation that holds a pointer into any view; `at` is the pointer's offset in the space.
bool find(const void* pointer, Allocation* found, size_t* at);

// Opens or closes the device memory of `to` in the view of `from`.
void open_peer(int from, int to, bool open);

struct Totals {
  uint64_t live = 0;
  size_t device_bytes[8] = {};
  size_t managed_bytes = 0;
  size_t pinned_bytes = 0;
};
Totals totals();

}  // namespace allocations
}  // namespace hipemu
