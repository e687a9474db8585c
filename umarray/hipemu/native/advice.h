// What a program has said about pages: advice and the last prefetch. What is done with it is residency's.
//
// Kept for each 4 KiB, as a real driver does, however large the pages that migrate are here. A migrating page follows
// only what all of its parts say: advice on a part of one is remembered and read back, but moves nothing.
//
// Reading a range back follows the runtime's documentation: read-mostly is 1 only if every page has it; a preferred
// or last prefetch location that differs between pages reads as "invalid device"; accessed-by lists the devices that
// every page names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi.h"
#include "space.h"

namespace hipemu::advice {

// All zero is the state of a fresh page. Places are kept as place + 2, so that 0 says "none".
struct Hint {
  uint8_t preferred = 0;
  uint8_t last_prefetch = 0;
  uint16_t accessed_by = 0;  // bit place + 1
  bool read_mostly = false;
  bool coarse_grain = false;

  int preferred_place() const { return static_cast<int>(preferred) - 2; }  // hipInvalidDeviceId for none
  bool accessed(int place) const { return accessed_by >> (place + 1) & 1; }
};

// What holds for all of a migrating page; page = offset / config().page.
Hint hint(size_t page);

void forget(size_t offset, size_t bytes);
void set(size_t offset, size_t bytes, hipMemoryAdvise advice, int place);
void set_prefetched(size_t offset, size_t bytes, int place);
hipError_t read(void* data, size_t size, hipMemRangeAttribute attribute, size_t offset, size_t bytes);

}  // namespace hipemu::advice
