#include "pages.h"

#include <sys/mman.h>

#include <cstdlib>

#include "config.h"
#include "device.h"

namespace hipemu::pages {
namespace {

// Arrays of one entry a page; the system makes only what is touched.
template <class T>
T* array(size_t count) {
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<T*>(memory);
}

size_t count() { return Space::get().size() / config().page; }

}  // namespace

Page& page(size_t index) {
  static Page* const all = array<Page>(count());
  return all[index];
}

Queue::Queue(size_t pages) : links_(array<Link>(pages)) {}

bool Queue::contains(size_t index) const { return links_[index].in; }

void Queue::append(size_t index) {
  Link& link = links_[index];
  if (link.in) remove(index);
  link = {last_, 0, 1};
  const auto number = static_cast<uint32_t>(index + 1);
  if (last_) links_[last_ - 1].after = number;
  last_ = number;
  if (!first_) first_ = number;
}

void Queue::remove(size_t index) {
  Link& link = links_[index];
  if (!link.in) return;
  if (link.before) {
    links_[link.before - 1].after = link.after;
  } else {
    first_ = link.after;
  }
  if (link.after) {
    links_[link.after - 1].before = link.before;
  } else {
    last_ = link.before;
  }
  link = {0, 0, 0};
}

bool Queue::oldest(size_t except, size_t* index) const {
  uint32_t number = first_;
  if (number && number - 1 == except) number = links_[number - 1].after;
  if (!number) return false;
  *index = number - 1;
  return true;
}

Queue& queue(int device) {
  static Queue* queues[8] = {};
  if (!queues[device]) queues[device] = new Queue(count());  // only ever called under residency's lock
  return *queues[device];
}

void Changes::update(size_t index) {
  Page& p = page(index);
  for (int place = HOST; place < device::count(); ++place) {
    const Level due = p.due(place);
    if (due == p.level(place)) continue;
    const int shift = 2 * (place + 1);
    p.open = (p.open & ~(3u << shift)) | static_cast<uint32_t>(due) << shift;
    add(place, index, due);
  }
}

void Changes::add(int place, size_t index, Level level) {
  Run& run = runs_[place + 1];
  if (run.count && run.level == level && index == run.first + run.count) {
    ++run.count;
    return;
  }
  apply(place);
  run = {index, 1, level};
}

void Changes::apply(int place) {
  Run& run = runs_[place + 1];
  if (!run.count) return;
  const size_t offset = run.first * config().page, bytes = run.count * config().page;
  if (place == HOST) {
    host_view::set(offset, bytes, run.level);
  } else {
    Space::get().protect(place, offset, bytes,
                         run.level == host_view::closed     ? PROT_NONE
                         : run.level == host_view::readable ? PROT_READ
                                                            : PROT_READ | PROT_WRITE);
  }
  run.count = 0;
}

void Changes::flush() {
  // Close before opening, so that no two places can write at once.
  for (int pass = 0; pass < 2; ++pass) {
    for (int place = HOST; place < device::count(); ++place) {
      const Run& run = runs_[place + 1];
      if (run.count && (pass == 1 || run.level != host_view::writable)) apply(place);
    }
  }
}

}  // namespace hipemu::pages
