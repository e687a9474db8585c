#include "residency.h"

#include <mutex>
#include <vector>

#include "advice.h"
#include "allocations.h"
#include "config.h"
#include "cost.h"
#include "counters.h"
#include "device.h"
#include "history.h"
#include "pages.h"

namespace hipemu::residency {
namespace {

using counters::add;
using pages::Changes;
using pages::Page;
using pages::page;
using pages::queue;

// Guards everything below, the pages and the queues. Nothing is touched through a view while it is held, so a fault
// handler can always take it.
std::mutex mutex;
size_t taken[8];

struct Borrowed {
  int device;
  size_t index;
  bool managed;
};
std::vector<Borrowed>& borrowed() {
  static auto* const list = new std::vector<Borrowed>;
  return *list;
}

constexpr size_t NO_PAGE = ~size_t{0};

uint16_t bit(int place) { return static_cast<uint16_t>(1u << (place + 1)); }
size_t first_page(size_t offset) { return offset / config().page; }
size_t end_page(size_t offset, size_t bytes) { return (offset + bytes + config().page - 1) / config().page; }

// Whether `from` can reach memory of `to` without moving it: devices reach the host over the bus and one another over
// the link; the host reaches no device memory.
bool reachable(int from, int to) { return from == to || from != HOST || (to != HOST && device::profile().integrated); }

void hold(size_t index, int place) {
  Page& p = page(index);
  p.copies = static_cast<uint16_t>(p.copies | bit(place));
  if (place != HOST && !queue(place).contains(index)) {
    taken[place] += config().page;
    queue(place).append(index);
  }
}

void let_go(size_t index, int place) {
  Page& p = page(index);
  p.copies = static_cast<uint16_t>(p.copies & ~bit(place));
  p.waiting = static_cast<uint16_t>(p.waiting & ~bit(place));
  if (place != HOST && queue(place).contains(index)) {
    taken[place] -= config().page;
    queue(place).remove(index);
  }
}

// The mappings that stand by advice, for where the page is now.
void map_accessed_by(size_t index) {
  Page& p = page(index);
  const advice::Hint hint = advice::hint(index);
  const uint16_t before = p.mapped;
  p.mapped = 0;
  if (!p.home) return;
  for (int d = 0; d < device::count(); ++d) {
    if (!hint.accessed(d) || p.holds(d) || !reachable(d, p.home_place())) continue;
    p.mapped = static_cast<uint16_t>(p.mapped | bit(d));
    if (!(before & bit(d))) add(d, counters::mapped_bytes, config().page);
  }
}

history::Cause told(cost::Cause cause) {
  return cause == cost::fault ? history::fault : cause == cost::prefetch ? history::prefetch : history::eviction;
}

// A prefetch has brought a page to a device: with the history on it stays closed until it is touched, unless others
// reach it there by advice, whose touches are not seen. Not on the host, where a program can see which pages are open.
void await_touch(size_t index, int place) {
  if (!history::on() || place == HOST) return;
  Page& p = page(index);
  if (p.mapped) return history::add(history::used, history::prefetch, index, place, place);
  p.waiting = static_cast<uint16_t>(p.waiting | bit(place));
}

void touched(size_t index, int place, history::Cause cause) {
  Page& p = page(index);
  if (!p.waits(place)) return;
  p.waiting = static_cast<uint16_t>(p.waiting & ~bit(place));
  history::add(history::used, cause, index, place, place);
}

void count_transfer(size_t index, int from, int to, cost::Cause cause, history::Kind kind = history::moved) {
  history::add(kind, told(cause), index, from, to);
  const size_t bytes = config().page;
  if (to == HOST) {
    add(from, counters::bytes_to_host, bytes);
    if (cause == cost::prefetch) add(HOST, counters::prefetched_bytes, bytes);
    if (cause == cost::eviction) add(from, counters::evicted_bytes, bytes);
  } else {
    add(to, from == HOST ? counters::bytes_to_device : counters::bytes_between_devices, bytes);
    if (cause == cost::prefetch) add(to, counters::prefetched_bytes, bytes);
  }
  cost::transfer(from, to, bytes, cause);
}

void drop_copies(size_t index, int except, history::Cause cause) {
  for (int place = HOST; place < device::count(); ++place) {
    if (place == except || !page(index).holds(place)) continue;
    let_go(index, place);
    add(place, counters::dropped_bytes, config().page);
    history::add(history::dropped, cause, index, except, place);
  }
}

bool evict_one(int device, size_t except, Changes* changes) {
  size_t victim;
  if (!queue(device).oldest(except, &victim)) return false;
  Page& p = page(victim);
  let_go(victim, device);
  if (p.copies) {
    add(device, counters::dropped_bytes, config().page);
    history::add(history::dropped, history::eviction, victim, device, device);
    if (p.home_place() == device) {
      int heir = HOST;
      while (!p.holds(heir)) ++heir;
      p.home = static_cast<uint8_t>(heir + 2);
    }
  } else {
    count_transfer(victim, device, HOST, cost::eviction);
    hold(victim, HOST);
    p.home = HOST + 2;
  }
  map_accessed_by(victim);
  changes->update(victim);
  return true;
}

bool make_room(int device, size_t bytes, size_t except, Changes* changes) {
  if (bytes > config().memory) return false;
  while (taken[device] > config().memory - bytes) {
    if (!evict_one(device, except, changes)) return false;
  }
  return true;
}

// Moves a page; false when the device has no room that managed pages could give.
bool migrate(size_t index, int to, cost::Cause cause, Changes* changes) {
  Page& p = page(index);
  if (to != HOST && !p.holds(to) && !make_room(to, config().page, index, changes)) return false;
  if (!p.holds(to)) count_transfer(index, p.home_place(), to, cause);
  const int from = p.home_place();
  hold(index, to);
  if (from != to && p.holds(from)) let_go(index, from);
  drop_copies(index, to, told(cause));
  p.home = static_cast<uint8_t>(to + 2);
  map_accessed_by(index);
  return true;
}

bool duplicate(size_t index, int to, cost::Cause cause, Changes* changes) {
  Page& p = page(index);
  if (to != HOST && !make_room(to, config().page, index, changes)) return false;
  const int from = p.home_place();
  count_transfer(index, from, to, cause, history::copied);
  add(to, counters::duplicated_bytes, config().page);
  hold(index, to);
  p.mapped = static_cast<uint16_t>(p.mapped & ~bit(to));
  return true;
}

void map_remotely(size_t index, int place) {
  Page& p = page(index);
  if (p.reaches(place)) return;
  p.mapped = static_cast<uint16_t>(p.mapped | bit(place));
  add(place, counters::mapped_bytes, config().page);
  history::add(history::mapped, history::fault, index, p.home_place(), place);
}

// A page's first touch: it comes to be at `place`, or on the host if that device is full for good.
void make(size_t index, int place, history::Cause cause, Changes* changes) {
  Page& p = page(index);
  if (place != HOST && !make_room(place, config().page, index, changes)) place = HOST;
  hold(index, place);
  p.home = static_cast<uint8_t>(place + 2);
  add(place, counters::new_pages, 1);
  history::add(history::made, cause, index, place, place);
  map_accessed_by(index);
}

void serve(size_t index, int place, bool write, Changes* changes) {
  Page& p = page(index);
  const advice::Hint hint = advice::hint(index);
  const int preferred = hint.preferred_place();
  if (!p.home) {
    const bool elsewhere = preferred != hipInvalidDeviceId && reachable(place, preferred);
    make(index, elsewhere ? preferred : place, history::fault, changes);
  }
  if (p.holds(place)) {
    if (write && p.shared()) {
      drop_copies(index, place, history::fault);
      p.home = static_cast<uint8_t>(place + 2);
      map_accessed_by(index);
    }
  } else if (p.reaches(place)) {
    if (write && p.shared()) drop_copies(index, p.home_place(), history::fault);
  } else if (hint.read_mostly && !write) {
    if (!duplicate(index, place, cost::fault, changes)) map_remotely(index, place);
  } else if (place == HOST) {
    migrate(index, HOST, cost::fault, changes);
  } else {
    int target = place;
    if (preferred != hipInvalidDeviceId) {
      target = preferred;
    } else if (hint.accessed(place)) {
      target = p.home_place();
    }
    if (target != p.home_place() || p.shared()) migrate(index, target, cost::fault, changes);
    if (!p.holds(place)) map_remotely(index, place);
  }
  changes->update(index);
}

bool enough(const Page& p, int place, bool write) {
  return p.level(place) >= (write ? host_view::writable : host_view::readable);
}

}  // namespace

bool take(int device, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex);
  Changes changes;
  if (!make_room(device, bytes, NO_PAGE, &changes)) return false;
  taken[device] += bytes;
  return true;
}

void give_back(int device, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex);
  taken[device] -= bytes;
}

size_t used(int device) {
  const std::lock_guard<std::mutex> held(mutex);
  return taken[device];
}

void begin(size_t offset, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex);
  advice::forget(offset, bytes);
  for (size_t i = first_page(offset); i < end_page(offset, bytes); ++i) {
    page(i) = Page{};
    page(i).managed = true;
  }
  host_view::begin(offset, bytes);
}

void end(size_t offset, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex);
  for (size_t i = first_page(offset); i < end_page(offset, bytes); ++i) {
    for (int place = HOST; place < device::count(); ++place) let_go(i, place);
    page(i) = Page{};
  }
  advice::forget(offset, bytes);
  host_view::end(offset, bytes);
}

bool fault(int place, size_t offset, bool write) {
  const std::lock_guard<std::mutex> held(mutex);
  const size_t index = first_page(offset);
  Page& p = page(index);
  if (!p.managed) return false;
  if (enough(p, place, write)) {
    // Another thread's fault brought it here meanwhile, or the system took the mapping away by itself.
    if (place == HOST) host_view::set(index * config().page, config().page, p.level(HOST));
    return true;
  }
  Changes changes;
  if (p.waits(place)) {
    const history::Touch touch(place, index, write, false);
    touched(index, place, history::fault);
    changes.update(index);
    if (enough(p, place, write)) return true;
  }
  add(place, counters::faults, 1);
  cost::faulted(place);
  const history::Touch touch(place, index, write);
  serve(index, place, write, &changes);
  return true;
}

bool borrow(int device, size_t offset, bool write) {
  Allocation allocation;
  size_t at;
  if (!allocations::find(Space::get().at(HOST, offset), &allocation, &at)) return false;
  const std::lock_guard<std::mutex> held(mutex);
  const size_t index = first_page(offset);
  Page& p = page(index);
  if (p.managed) {
    Changes changes;
    touched(index, device, history::fault);
    changes.update(index);
    if (!enough(p, device, write)) {
      add(device, counters::faults, 1);
      cost::faulted(device);
      const history::Touch touch(device, index, write);
      serve(index, device, write, &changes);
    }
    if (!p.borrowed) borrowed().push_back({device, index, true});
    p.borrowed = true;
    changes.update(index);
    return true;
  }
  if (allocation.kind != Kind::device || !device::peer_enabled(device, allocation.device)) return false;
  borrowed().push_back({device, index, false});
  Space::get().protect(HOST, index * config().page, config().page, PROT_READ | PROT_WRITE);
  return true;
}

void give_back_borrowed(int device) {
  const std::lock_guard<std::mutex> held(mutex);
  if (borrowed().empty()) return;
  Changes changes;
  std::vector<Borrowed> kept;
  for (const Borrowed& b : borrowed()) {
    if (b.device != device) {
      kept.push_back(b);
    } else if (b.managed) {
      page(b.index).borrowed = false;
      if (page(b.index).managed) changes.update(b.index);
    } else {
      Space::get().protect(HOST, b.index * config().page, config().page, PROT_NONE);
    }
  }
  borrowed().swap(kept);
}

void populate(size_t offset, size_t bytes, int device) {
  const std::lock_guard<std::mutex> held(mutex);
  Changes changes;
  for (size_t i = first_page(offset); i < end_page(offset, bytes); ++i) {
    if (!page(i).managed) continue;
    if (!page(i).home) make(i, device, history::copy, &changes);
    touched(i, page(i).home_place(), history::copy);
    changes.update(i);
  }
}

void prefetch(size_t offset, size_t bytes, int place) {
  const std::lock_guard<std::mutex> held(mutex);
  cost::prefetch_call(place);
  cost::Batches batches;
  Changes changes;
  for (size_t i = first_page(offset); i < end_page(offset, bytes); ++i) {
    Page& p = page(i);
    if (!p.managed) continue;
    if (p.home && p.holds(place)) {
      if (place != HOST) queue(place).append(i);  // the newest again
    } else {
      if (!p.home) {
        make(i, place, history::prefetch, &changes);
      } else {
        const bool copy = advice::hint(i).read_mostly;
        const bool moved = (copy ? duplicate : migrate)(i, place, cost::prefetch, &changes);
        if (moved) batches.moved(i, place);
      }
      if (p.holds(place)) await_touch(i, place);
    }
    changes.update(i);
  }
}

void advice_changed(size_t offset, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex);
  Changes changes;
  for (size_t i = first_page(offset); i < end_page(offset, bytes); ++i) {
    Page& p = page(i);
    if (!p.managed || !p.home) continue;
    if (!advice::hint(i).read_mostly && p.shared()) drop_copies(i, p.home_place(), history::advice);
    map_accessed_by(i);
    changes.update(i);
  }
}

void where(size_t offset, size_t bytes, int8_t* places) {
  const std::lock_guard<std::mutex> held(mutex);
  for (size_t i = first_page(offset); i < end_page(offset, bytes); ++i) {
    *places++ = page(i).home ? static_cast<int8_t>(page(i).home_place()) : static_cast<int8_t>(hipInvalidDeviceId);
  }
}

}  // namespace hipemu::residency
