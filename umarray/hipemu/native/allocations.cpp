#include "allocations.h"

#include <map>
#include <mutex>

#include "config.h"
#include "device.h"
#include "errors.h"
#include "faults.h"
#include "residency.h"
#include "space.h"
#include "stream.h"

namespace hipemu::allocations {
namespace {

struct Table {
  std::mutex mutex;
  std::map<size_t, Allocation> by_offset;
  uint64_t next_id = 1;
};

Table& table() {
  static auto* const t = new Table;
  return *t;
}

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
size_t on_device(const Allocation& a) { return round_up(a.bytes, 4096); }

// Not without XNACK, nor where host and device share one memory: there every page is open to all.
bool migrates(const Allocation& a) {
  return a.kind == Kind::managed && config().xnack && !device::profile().integrated;
}

// Which views a new allocation is open in. Managed memory that migrates is opened page by page (residency).
void open_views(const Allocation& a) {
  Space& space = Space::get();
  const int open = PROT_READ | PROT_WRITE;
  if (a.kind == Kind::device) {
    for (int d = 0; d < device::count(); ++d) {
      if (device::peer_enabled(d, a.device)) space.protect(d, a.offset, a.rounded, open);
    }
    return;
  }
  if (migrates(a)) {
    faults::watch();
    residency::begin(a.offset, a.rounded);
    return;
  }
  for (int place = HOST; place < device::count(); ++place) space.protect(place, a.offset, a.rounded, open);
}

void close_views(const Allocation& a) {
  if (migrates(a)) residency::end(a.offset, a.rounded);
  for (int place = HOST; place < device::count(); ++place) Space::get().protect(place, a.offset, a.rounded, PROT_NONE);
}

}  // namespace

hipError_t make(Kind kind, size_t bytes, int device, unsigned flags, void** pointer) {
  Allocation a;
  a.bytes = bytes;
  if (bytes == 0 || bytes > Space::get().size()) return bytes ? hipErrorOutOfMemory : hipErrorInvalidValue;
  a.rounded = round_up(bytes, config().page);
  a.kind = kind;
  a.device = device;
  a.flags = flags;
  if (kind == Kind::device && !residency::take(device, on_device(a))) return hipErrorOutOfMemory;
  if (!Space::get().carve(a.rounded, &a.offset)) {
    if (kind == Kind::device) residency::give_back(device, on_device(a));
    return hipErrorOutOfMemory;
  }
  open_views(a);
  {
    const std::lock_guard<std::mutex> held(table().mutex);
    a.id = table().next_id++;
    table().by_offset[a.offset] = a;
  }
  *pointer = Space::get().at(HOST, a.offset);
  return hipSuccess;
}

hipError_t release(void* pointer, bool pinned) {
  Allocation a;
  size_t at;
  if (!find(pointer, &a, &at) || at != a.offset || (a.kind == Kind::pinned) != pinned) return hipErrorInvalidValue;
  // A free of the driver waits for the device: programs come to rely on it.
  if (a.kind == Kind::managed) {
    streams::wait_all();
  } else {
    streams::wait_device(a.device);
  }
  {
    const std::lock_guard<std::mutex> held(table().mutex);
    if (!table().by_offset.erase(a.offset)) return hipErrorInvalidValue;  // another thread freed it meanwhile
  }
  close_views(a);
  if (a.kind == Kind::device) residency::give_back(a.device, on_device(a));
  Space::get().give(a.offset, a.rounded);
  return hipSuccess;
}

bool find(const void* pointer, Allocation* found, size_t* at) {
  if (!Space::get().find(pointer, at)) return false;
  const std::lock_guard<std::mutex> held(table().mutex);
  auto next = table().by_offset.upper_bound(*at);
  if (next == table().by_offset.begin()) return false;
  const Allocation& a = std::prev(next)->second;
  if (*at >= a.offset + a.rounded) return false;
  *found = a;
  return true;
}

void open_peer(int from, int to, bool open) {
  const std::lock_guard<std::mutex> held(table().mutex);
  for (const auto& [offset, a] : table().by_offset) {
    if (a.kind != Kind::device || a.device != to) continue;
    Space::get().protect(from, offset, a.rounded, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

Totals totals() {
  Totals sums;
  const std::lock_guard<std::mutex> held(table().mutex);
  for (const auto& [offset, a] : table().by_offset) {
    ++sums.live;
    if (a.kind == Kind::device) sums.device_bytes[a.device] += on_device(a);
    if (a.kind == Kind::managed) sums.managed_bytes += a.rounded;
    if (a.kind == Kind::pinned) sums.pinned_bytes += a.rounded;
  }
  return sums;
}

}  // namespace hipemu::allocations
