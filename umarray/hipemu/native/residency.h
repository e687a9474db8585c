// Where each managed page lives, and what moves it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi.h"
#include "space.h"

namespace hipemu::residency {

// Device memory of plain allocations: `take` makes room by evicting managed pages; false when even that is too little.
bool take(int device, size_t bytes);
void give_back(int device, size_t bytes);

// Bytes of a device that are taken: plain allocations and managed pages that live there.
size_t used(int device);

// A managed allocation comes and goes.
void begin(size_t offset, size_t bytes);
void end(size_t offset, size_t bytes);

// A touch of a closed page in the view of `place`. False: not a managed page, the touch is a real error.
bool fault(int place, size_t offset, bool write);

// A worker of `device` followed a pointer stored in memory into the host view. See faults.h.
bool borrow(int device, size_t offset, bool write);
void give_back_borrowed(int device);

// A copy of kind "default" touches pages where they are; those that were never touched come to be on `device`.
void populate(size_t offset, size_t bytes, int device);

// What the runtime's calls do, run by the stream's worker (prefetch) or the caller (advice).
void prefetch(size_t offset, size_t bytes, int place);
void advice_changed(size_t offset, size_t bytes);

}  // namespace hipemu::residency
