#include "history.h"

#include <ctime>
#include <mutex>
#include <vector>

#include "config.h"
#include "space.h"

namespace hipemu::history {

std::atomic<bool> active{false};

namespace {

constexpr uint64_t LOOK_BACK = 8;  // records among which a run is looked for that a page continues

// A leaf: taken under residency's lock, by fault handlers too; nothing is called or touched while it is held.
std::mutex mutex;
int users = 0;
uint64_t next = 0;    // number of the next record
uint64_t sealed = 0;  // records before this one are not continued
bool touching = false, writing = false;
uint32_t waited = 0;  // the fault of the touch, until a record has it

std::vector<Record>& ring() {
  static auto* const records = new std::vector<Record>;
  return *records;
}

Record& at(uint64_t number) { return ring()[number % ring().size()]; }

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

bool same(const Record& a, const Record& b) {
  return a.kind == b.kind && a.cause == b.cause && a.from == b.from && a.to == b.to && a.write == b.write;
}

// Whether a late record is continued by this one. Never across another record of the same pages: each page's own
// history must stay in order.
bool continued(const Record& one) {
  const uint64_t room = ring().size();
  for (uint64_t i = next; i > sealed && i > 0 && next - i < LOOK_BACK && next - i < room; --i) {
    Record& earlier = at(i - 1);
    if (same(earlier, one) && earlier.address + earlier.bytes == one.address) {
      earlier.bytes += one.bytes;
      earlier.last = one.last;
      earlier.faults += one.faults;
      return true;
    }
    if (earlier.address < one.address + one.bytes && one.address < earlier.address + earlier.bytes) return false;
  }
  return false;
}

void put(Kind kind, Cause cause, size_t page, int from, int to) {
  const uint64_t time = now();
  const size_t bytes = config().page;
  Record one{};
  one.first = one.last = time;
  one.address = reinterpret_cast<uint64_t>(Space::get().at(HOST, page * bytes));
  one.bytes = bytes;
  one.kind = kind;
  one.cause = cause;
  one.from = static_cast<int8_t>(from);
  one.to = static_cast<int8_t>(to);
  const std::lock_guard<std::mutex> held(mutex);
  if (!users) return;
  if (cause == fault && touching) {
    one.write = writing;
    one.faults = waited;
    waited = 0;
  }
  if (!continued(one)) at(next++) = one;
}

}  // namespace

Touch::Touch(int place, size_t page, bool write, bool waits) : place_(place), page_(page) {
  if (!on()) return;
  const std::lock_guard<std::mutex> held(mutex);
  touching = true;
  writing = write;
  waited = waits ? 1 : 0;
}

Touch::~Touch() {
  if (!on()) return;
  if (touching && waited) put(faulted, fault, page_, place_, place_);
  const std::lock_guard<std::mutex> held(mutex);
  touching = false;
  waited = 0;
}

void add(Kind kind, Cause cause, size_t page, int from, int to) {
  if (on()) put(kind, cause, page, from, to);
}

void start(size_t records) {
  const std::lock_guard<std::mutex> held(mutex);
  if (users++ == 0) {
    if (ring().empty()) ring().resize(records ? records : 1);
    active.store(true, std::memory_order_relaxed);
  }
}

void stop() {
  const std::lock_guard<std::mutex> held(mutex);
  if (users && --users == 0) active.store(false, std::memory_order_relaxed);
}

uint64_t mark() {
  const std::lock_guard<std::mutex> held(mutex);
  return sealed = next;
}

size_t read(uint64_t* cursor, Record* out, size_t room, uint64_t* lost) {
  const std::lock_guard<std::mutex> held(mutex);
  const uint64_t oldest = next > ring().size() ? next - ring().size() : 0;
  *lost = *cursor < oldest ? oldest - *cursor : 0;
  uint64_t from = *cursor < oldest ? oldest : *cursor;
  size_t count = 0;
  while (from < next && count < room) out[count++] = at(from++);
  if (from > sealed) sealed = from;
  *cursor = from;
  return count;
}

}  // namespace hipemu::history
