// Where each managed page lives, and what moves it: demand paging, prefetch, advice, eviction.
//
// A page has a home and, if it is read-mostly, copies elsewhere; all of them are the same bytes of the memory file, so
// a "migration" opens the page in one view and closes it in the others. What it would have cost is added up by cost.h.
//
// Rules for a fault, the first that holds; what real drivers do, and where that is written, is in advice.h:
//   host touches               the page comes home to the host, whatever the advice; a read of a read-mostly page
//                              copies it
//   device d touches, and
//     has a mapping            it stays where it is (accessed-by)
//     read-mostly, a read      d gets a copy; a write by anyone drops all copies but the writer's
//     preferred is d           it migrates to d
//     preferred is elsewhere   it goes there (if it is not there yet), and d reaches it over the bus or the link
//     accessed-by d            it stays where it is, and d reaches it there
//     otherwise                it migrates to d
// Accessed-by devices are given their mapping at once, when the advice is set and after each migration. A first touch
// makes the page at the preferred location, else where it is touched.
//
// Not seen: a kernel that follows a pointer stored in memory to a page that is on the host. Such a pointer is an
// address of the host's view, which is open there, so the page is reached where it is, with no fault or migration.
//
// Where this departs from today's ROCm: its kernel driver does not make copies for read-mostly (the runtime's
// documentation promises them), and eviction there is by buffer, here by page in the order of migration or prefetch
// (touches of a mapped page are not seen, so there is no true LRU).
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

// A worker of `device` followed a pointer that is stored in memory, and so came to the host's view. Counted as a touch
// by the device; the host's view of the page is opened until the operation ends.
bool borrow(int device, size_t offset, bool write);
void give_back_borrowed(int device);

// A copy of kind "default" touches pages where they are; those that were never touched come to be on `device`.
void populate(size_t offset, size_t bytes, int device);

// What the runtime's calls do, run by the stream's worker (prefetch) or the caller (advice).
void prefetch(size_t offset, size_t bytes, int place);
void advice_changed(size_t offset, size_t bytes);

// Where pages are: place, or hipInvalidDeviceId for a page that was never touched. One entry a page.
void where(size_t offset, size_t bytes, int8_t* places);

}  // namespace hipemu::residency
