// hipemu_*: what tests and tools read and set. Not part of HIP; see umarray/hipemu/control.py.
#include <cstring>

#include "abi.h"
#include "allocations.h"
#include "calls.h"
#include "config.h"
#include "cost.h"
#include "counters.h"
#include "errors.h"
#include "history.h"
#include "host_view.h"
#include "residency.h"
#include "space.h"
#include "stream.h"

using namespace hipemu;

// Calls of one API function so far, or of all of them for a null name.
HIPEMU_EXPORT uint64_t hipemu_calls(const char* name) { return calls::count(name); }

// "name count" lines. Returns the length; writes as much as fits, with a final zero.
HIPEMU_EXPORT size_t hipemu_calls_table(char* text, size_t room) {
  const std::string lines = calls::table();
  if (room) {
    const size_t n = lines.size() < room - 1 ? lines.size() : room - 1;
    std::memcpy(text, lines.data(), n);
    text[n] = 0;
  }
  return lines.size();
}

HIPEMU_EXPORT uint64_t hipemu_live_allocations() { return allocations::totals().live; }
HIPEMU_EXPORT uint64_t hipemu_used_bytes(int device) { return residency::used(device); }
HIPEMU_EXPORT void hipemu_clear_error() { errors::clear_sticky(); }

// Counters of one place (-1 the host), in the order of counters.h. Returns how many there are.
HIPEMU_EXPORT int hipemu_counters(int place, uint64_t* out, int room) {
  for (int i = 0; i < counters::COUNT && i < room; ++i) {
    out[i] = counters::values[place + 1][i].load(std::memory_order_relaxed);
  }
  return counters::COUNT;
}

HIPEMU_EXPORT void hipemu_synchronize() { streams::wait_all(); }
HIPEMU_EXPORT size_t hipemu_page_bytes() { return config().page; }
HIPEMU_EXPORT int hipemu_device_count() { return config().devices; }
HIPEMU_EXPORT const char* hipemu_fault_way() { return host_view::way(); }

// Where the pages of a managed range are, one entry a page. Returns the number of pages; 0 for anything else.
HIPEMU_EXPORT size_t hipemu_where(const void* pointer, size_t bytes, int8_t* places, size_t room) {
  Allocation found;
  size_t at;
  if (!bytes || !allocations::find(pointer, &found, &at) || found.kind != Kind::managed) return 0;
  const size_t count = (at + bytes + config().page - 1) / config().page - at / config().page;
  if (count <= room) residency::where(at, bytes, places);
  return count;
}

// The history of pages (history.h), and the figures of the cost model.
HIPEMU_EXPORT void hipemu_history_start(size_t records) { history::start(records); }
HIPEMU_EXPORT void hipemu_history_stop() { history::stop(); }
HIPEMU_EXPORT uint64_t hipemu_history_mark() { return history::mark(); }
HIPEMU_EXPORT uint64_t hipemu_history_read(uint64_t* cursor, void* out, size_t room, uint64_t* lost) {
  return history::read(cursor, static_cast<history::Record*>(out), room, lost);
}
HIPEMU_EXPORT void hipemu_costs(double* out) { cost::figures(out); }
