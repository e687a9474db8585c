#include "advice.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "config.h"
#include "device.h"

namespace hipemu::advice {
namespace {

constexpr size_t UNIT = 4096;

// One entry a unit of the whole space, made by the system as it is touched.
Hint* hints() {
  static Hint* const all = [] {
    const size_t bytes = Space::get().size() / UNIT * sizeof(Hint);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<Hint*>(memory);
  }();
  return all;
}

struct Pages {
  size_t first, end;
};

Pages pages_of(size_t offset, size_t bytes) {
  return {offset / UNIT, (offset + bytes + UNIT - 1) / UNIT};
}

std::mutex& mutex() {
  static auto* const m = new std::mutex;
  return *m;
}

}  // namespace

Hint hint(size_t page) {
  const std::lock_guard<std::mutex> held(mutex());
  const size_t parts = config().page / UNIT;
  const Hint* part = hints() + page * parts;
  Hint all = *part;
  for (size_t i = 1; i < parts; ++i) {
    const Hint& other = part[i];
    if (other.preferred != all.preferred) all.preferred = 0;
    all.accessed_by = static_cast<uint16_t>(all.accessed_by & other.accessed_by);
    all.read_mostly = all.read_mostly && other.read_mostly;
    all.coarse_grain = all.coarse_grain && other.coarse_grain;
  }
  return all;
}

void forget(size_t offset, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex());
  const Pages pages = pages_of(offset, bytes);
  for (size_t i = pages.first; i < pages.end; ++i) hints()[i] = Hint{};
}

void set(size_t offset, size_t bytes, hipMemoryAdvise advice, int place) {
  const std::lock_guard<std::mutex> held(mutex());
  const Pages pages = pages_of(offset, bytes);
  const auto bit = static_cast<uint16_t>(1u << (place + 1));
  for (size_t i = pages.first; i < pages.end; ++i) {
    Hint& h = hints()[i];
    switch (advice) {
      case hipMemAdviseSetReadMostly: h.read_mostly = true; break;
      case hipMemAdviseUnsetReadMostly: h.read_mostly = false; break;
      case hipMemAdviseSetPreferredLocation: h.preferred = static_cast<uint8_t>(place + 2); break;
      case hipMemAdviseUnsetPreferredLocation: h.preferred = 0; break;
      case hipMemAdviseSetAccessedBy: h.accessed_by = static_cast<uint16_t>(h.accessed_by | bit); break;
      case hipMemAdviseUnsetAccessedBy: h.accessed_by = static_cast<uint16_t>(h.accessed_by & ~bit); break;
      case hipMemAdviseSetCoarseGrain: h.coarse_grain = true; break;
      case hipMemAdviseUnsetCoarseGrain: h.coarse_grain = false; break;
    }
  }
}

void set_prefetched(size_t offset, size_t bytes, int place) {
  const std::lock_guard<std::mutex> held(mutex());
  const Pages pages = pages_of(offset, bytes);
  for (size_t i = pages.first; i < pages.end; ++i) hints()[i].last_prefetch = static_cast<uint8_t>(place + 2);
}

hipError_t read(void* data, size_t size, hipMemRangeAttribute attribute, size_t offset, size_t bytes) {
  std::unique_lock<std::mutex> held(mutex());
  const Pages pages = pages_of(offset, bytes);
  auto* values = static_cast<int32_t*>(data);
  const Hint first = hints()[pages.first];
  bool read_mostly = true, same_preferred = true, same_prefetch = true, any_coarse = false, any_fine = false;
  uint16_t accessed_by = first.accessed_by;
  for (size_t i = pages.first; i < pages.end; ++i) {
    const Hint& h = hints()[i];
    read_mostly = read_mostly && h.read_mostly;
    same_preferred = same_preferred && h.preferred == first.preferred;
    same_prefetch = same_prefetch && h.last_prefetch == first.last_prefetch;
    accessed_by = static_cast<uint16_t>(accessed_by & h.accessed_by);
    (h.coarse_grain ? any_coarse : any_fine) = true;
  }
  held.unlock();  // `data` may lie on a page whose fault asks for a hint
  if (attribute == hipMemRangeAttributeAccessedBy) {
    if (size == 0 || size % 4) return hipErrorInvalidValue;
    size_t slot = 0;
    for (int place = HOST; place < device::count() && slot < size / 4; ++place) {
      if (accessed_by >> (place + 1) & 1) values[slot++] = place;
    }
    while (slot < size / 4) values[slot++] = hipInvalidDeviceId;
    return hipSuccess;
  }
  if (size != 4) return hipErrorInvalidValue;
  switch (attribute) {
    case hipMemRangeAttributeReadMostly: values[0] = read_mostly; return hipSuccess;
    case hipMemRangeAttributePreferredLocation:
      values[0] = same_preferred ? first.preferred_place() : hipInvalidDeviceId;
      return hipSuccess;
    case hipMemRangeAttributeLastPrefetchLocation:
      values[0] = same_prefetch ? static_cast<int>(first.last_prefetch) - 2 : hipInvalidDeviceId;
      return hipSuccess;
    case hipMemRangeAttributeCoherencyMode:
      values[0] = any_coarse && any_fine ? hipMemRangeCoherencyModeIndeterminate
                  : any_coarse           ? hipMemRangeCoherencyModeCoarseGrain
                                         : hipMemRangeCoherencyModeFineGrain;
      return hipSuccess;
    default: return hipErrorInvalidValue;
  }
}

}  // namespace hipemu::advice
