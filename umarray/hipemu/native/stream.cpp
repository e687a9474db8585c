#include "stream.h"

#include <algorithm>
#include <map>
#include <thread>

#include "device.h"
#include "errors.h"
#include "host_view.h"
#include "space.h"
#include "worker.h"

namespace hipemu {

bool Mark::done() const { return !stream || stream->completed.load(std::memory_order_acquire) >= sequence; }

void Mark::wait() const {
  if (done()) return;
  std::unique_lock<std::mutex> held(stream->mutex);
  stream->work_done.wait(held, [this] { return done(); });
}

namespace streams {
namespace {

thread_local int this_worker = HOST;

// All live streams. `order` makes "look at the others, then queue" one step, for the default-stream rule.
struct Table {
  std::mutex order;
  std::map<Stream*, StreamPtr> by_handle;
  std::map<int, StreamPtr> defaults;
  std::vector<Mark> draining;  // last work of destroyed streams: the device is not idle before it is done
};

Table& table() {
  static auto* const t = new Table;
  return *t;
}

void serve(const StreamPtr& stream) {
  for (;;) {
    Operation operation;
    {
      std::unique_lock<std::mutex> held(stream->mutex);
      stream->work_added.wait(held, [&] { return stream->closing || !stream->queue.empty(); });
      if (stream->queue.empty()) return;
      operation = std::move(stream->queue.front());
      stream->queue.pop_front();
    }
    for (const Mark& mark : operation.after) mark.wait();
    if (operation.host) {
      operation.work();
    } else if (!errors::sticky()) {
      worker::run(stream->device, operation.work);
    }
    operation = {};  // what the work held is released before anyone learns that it is done
    {
      const std::lock_guard<std::mutex> held(stream->mutex);
      stream->completed.fetch_add(1, std::memory_order_release);
    }
    stream->work_done.notify_all();
  }
}

void live(const StreamPtr& stream) {
  this_worker = stream->device;
  worker::prepare();
  host_view::register_worker(stream->device);
  serve(stream);
  host_view::forget_worker();
  worker::finish();
}

StreamPtr start(int device, unsigned flags, bool is_default) {
  auto stream = std::make_shared<Stream>();
  stream->device = device;
  stream->flags = flags;
  stream->is_default = is_default;
  std::thread([stream] { live(stream); }).detach();
  return stream;
}

void close(const StreamPtr& stream) {
  {
    const std::lock_guard<std::mutex> held(stream->mutex);
    stream->closing = true;
  }
  stream->work_added.notify_all();
}

// The per-thread default streams of one thread; they end with it.
struct ThreadStreams {
  std::map<int, StreamPtr> by_device;
  ~ThreadStreams() {
    for (auto& [device, stream] : by_device) {
      {
        const std::lock_guard<std::mutex> held(table().order);
        table().by_handle.erase(stream.get());
        table().draining.push_back({stream, stream->submitted.load()});
      }
      close(stream);
    }
  }
};

StreamPtr default_of(int device) {
  StreamPtr& stream = table().defaults[device];
  if (!stream) stream = start(device, 0, true);
  return stream;
}

Mark push(const StreamPtr& stream, Operation operation) {
  uint64_t sequence;
  {
    const std::lock_guard<std::mutex> held(stream->mutex);
    stream->queue.push_back(std::move(operation));
    sequence = stream->submitted.fetch_add(1) + 1;
  }
  stream->work_added.notify_one();
  return {stream, sequence};
}

void add_if_busy(const StreamPtr& stream, std::vector<Mark>* after) {
  Mark mark{stream, stream->submitted.load()};
  if (!mark.done()) after->push_back(std::move(mark));
}

Mark submit_operation(const StreamPtr& stream, Operation operation) {
  const std::lock_guard<std::mutex> held(table().order);
  if (stream->is_default) {
    for (const auto& [handle, other] : table().by_handle) {
      if (other->device == stream->device && other->blocking()) add_if_busy(other, &operation.after);
    }
  } else if (stream->blocking()) {
    const auto main = table().defaults.find(stream->device);
    if (main != table().defaults.end()) add_if_busy(main->second, &operation.after);
  }
  return push(stream, std::move(operation));
}

}  // namespace

int worker_device() { return this_worker; }

StreamPtr create(int device, unsigned flags) {
  StreamPtr stream = start(device, flags, false);
  const std::lock_guard<std::mutex> held(table().order);
  table().by_handle[stream.get()] = stream;
  return stream;
}

StreamPtr resolve(hipStream_t handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number == 0) {
    const std::lock_guard<std::mutex> held(table().order);
    return default_of(device::current());
  }
  if (number == 2) {
    thread_local ThreadStreams mine;
    StreamPtr& stream = mine.by_device[device::current()];
    if (!stream) stream = create(device::current(), 0);
    return stream;
  }
  const std::lock_guard<std::mutex> held(table().order);
  const auto found = table().by_handle.find(static_cast<Stream*>(handle));
  return found == table().by_handle.end() ? nullptr : found->second;
}

hipStream_t handle_of(const StreamPtr& stream) { return stream->is_default ? nullptr : stream.get(); }

hipError_t destroy(hipStream_t handle) {
  StreamPtr stream;
  {
    const std::lock_guard<std::mutex> held(table().order);
    const auto found = table().by_handle.find(static_cast<Stream*>(handle));
    if (found == table().by_handle.end()) return hipErrorInvalidHandle;
    stream = found->second;
    // While work is queued the default stream must still see it: the entry goes when the last work is done.
    table().by_handle.erase(found);
    Mark last{stream, stream->submitted.load()};
    auto& draining = table().draining;
    draining.erase(std::remove_if(draining.begin(), draining.end(), [](const Mark& m) { return m.done(); }),
                   draining.end());
    if (!last.done()) draining.push_back(last);
    if (!last.done() && stream->blocking()) {
      const StreamPtr main = default_of(stream->device);
      push(main, {[] {}, {last}, true});
    }
  }
  close(stream);
  return hipSuccess;
}

Mark submit(const StreamPtr& stream, std::function<void()> work, std::vector<Mark> after) {
  return submit_operation(stream, {std::move(work), std::move(after), false});
}

Mark submit_host(const StreamPtr& stream, std::function<void()> work, std::vector<Mark> after) {
  return submit_operation(stream, {std::move(work), std::move(after), true});
}

Mark now(const StreamPtr& stream) { return {stream, stream->submitted.load()}; }

void wait_device(int device) {
  std::vector<Mark> marks;
  {
    const std::lock_guard<std::mutex> held(table().order);
    for (const auto& [handle, stream] : table().by_handle) {
      if (stream->device == device) add_if_busy(stream, &marks);
    }
    const auto main = table().defaults.find(device);
    if (main != table().defaults.end()) add_if_busy(main->second, &marks);
    for (const Mark& mark : table().draining) {
      if (mark.stream->device == device && !mark.done()) marks.push_back(mark);
    }
  }
  for (const Mark& mark : marks) mark.wait();
}

void wait_all() {
  for (int d = 0; d < device::count(); ++d) wait_device(d);
}

}  // namespace streams
}  // namespace hipemu
