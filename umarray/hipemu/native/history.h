// What happened to which pages, in order: a ring of records, for programs that ask where their faults come from.
//
// Off until somebody asks. The counters (counters.h) say how much, the history says where and when. A record is a run of
// neighbouring pages to which the same thing happened one after another; the oldest are overwritten, and readers are
// told how many they missed. A reader keeps a cursor, so that several can read at once.
//
// While it is on, a page that a prefetch brought to a device stays closed until it is first touched, which tells
// prefetches that are used from those that are not. Such a touch is no fault in the counters, and costs nothing in the
// model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hipemu::history {

enum Kind : int8_t {
  moved,    // from `from` to `to`
  copied,   // to `to`, beside the original (read-mostly)
  mapped,   // `to` reaches it where it lies, at `from`
  made,     // first touched or prefetched: nothing to move
  dropped,  // the copy at `to` was given up, because of a write at `from` or to make room (from = to)
  used,     // first touched at `to` after a prefetch had brought it
  faulted,  // a fault at `to` that did none of the above
};

enum Cause : int8_t { fault, prefetch, eviction, advice, copy };

// As the spy interface hands it out (hipemu_history_read; umarray/hipemu/history.py).
struct Record {
  uint64_t first, last;  // nanoseconds of CLOCK_MONOTONIC, of the first and of the last page
  uint64_t address;      // in the host's view
  uint64_t bytes;
  uint32_t faults;       // touches that waited
  int8_t kind, cause, from, to;
  int8_t write, unused[7];
};
static_assert(sizeof(Record) == 48);

extern std::atomic<bool> active;
inline bool on() { return active.load(std::memory_order_relaxed); }

// What is said between here and its end is due to a touch by `place`. Used under residency's lock.
class Touch {
 public:
  Touch(int place, size_t page, bool write, bool waits = true);
  ~Touch();

 private:
  int place_;
  size_t page_;
};

// One page; does nothing while the history is off. Used under residency's lock.
void add(Kind kind, Cause cause, size_t page, int from, int to);

// Whoever reads. `start` may be called several times, each with its `stop`; the first decides how many records there
// are. `mark` is a cursor for what happens from now on; `read` copies what there is from a cursor on, moves the cursor,
// and returns the number of records; `lost` is how many before them had been overwritten.
void start(size_t records);
void stop();
uint64_t mark();
size_t read(uint64_t* cursor, Record* out, size_t room, uint64_t* lost);

}  // namespace hipemu::history
