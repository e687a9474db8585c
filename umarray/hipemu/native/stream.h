// Streams: one worker thread each, first in first out, truly asynchronous.
//
// A Mark names all the work queued on a stream up to a point. Events, stream waits and the legacy default-stream rule
// are all "run after these marks": an operation carries marks, its worker waits for them before running it. So a
// worker only ever waits for work that was queued before, and there is no cycle.
//
// Legacy default stream: its work runs after everything queued on the blocking streams of its device, and their later
// work runs after it. Non-blocking streams take no part.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "abi.h"

namespace hipemu {

struct Stream;
using StreamPtr = std::shared_ptr<Stream>;

struct Mark {
  StreamPtr stream;
  uint64_t sequence = 0;

  bool done() const;
  void wait() const;
};

struct Operation {
  std::function<void()> work;
  std::vector<Mark> after;
  bool host = false;  // a callback or a mark: runs even when a sticky error has ended the device's work
};

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;  // reported, not obeyed
  bool is_default = false;  // the legacy default stream of its device

  std::mutex mutex;
  std::condition_variable work_added;
  std::condition_variable work_done;
  std::deque<Operation> queue;
  bool closing = false;
  std::atomic<uint64_t> submitted{0};
  std::atomic<uint64_t> completed{0};

  bool blocking() const { return !(flags & hipStreamNonBlocking); }
};

namespace streams {

StreamPtr create(int device, unsigned flags);
// The stream behind a handle: 0 the legacy default stream of the current device, 2 this thread's own. Null if unknown.
StreamPtr resolve(hipStream_t handle);
hipError_t destroy(hipStream_t handle);
hipStream_t handle_of(const StreamPtr& stream);

// Queues work; the mark is that of the work itself.
Mark submit(const StreamPtr& stream, std::function<void()> work, std::vector<Mark> after = {});
Mark submit_host(const StreamPtr& stream, std::function<void()> work, std::vector<Mark> after = {});
Mark now(const StreamPtr& stream);
void wait_device(int device);
void wait_all();

// On a worker thread: the device it works for; HOST (-1) on every other thread.
int worker_device();

}  // namespace streams
}  // namespace hipemu
