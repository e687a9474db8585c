#include "event.h"

#include <chrono>
#include <map>
#include <mutex>

namespace hipemu::events {
namespace {

struct Event {
  unsigned flags = 0;
  std::shared_ptr<Recorded> last;
};

struct Table {
  std::mutex mutex;
  std::map<hipEvent_t, std::unique_ptr<Event>> live;
};

Table& table() {
  static auto* const t = new Table;
  return *t;
}

}  // namespace

hipError_t create(unsigned flags, hipEvent_t* event) {
  if (flags & ~7u || ((flags & hipEventInterprocess) && !(flags & hipEventDisableTiming))) return hipErrorInvalidValue;
  auto made = std::make_unique<Event>();
  made->flags = flags;
  *event = made.get();
  const std::lock_guard<std::mutex> held(table().mutex);
  table().live[*event] = std::move(made);
  return hipSuccess;
}

hipError_t destroy(hipEvent_t event) {
  const std::lock_guard<std::mutex> held(table().mutex);
  return table().live.erase(event) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t record(hipEvent_t event, const StreamPtr& stream) {
  auto record = std::make_shared<Recorded>();
  const std::lock_guard<std::mutex> held(table().mutex);
  const auto found = table().live.find(event);
  if (found == table().live.end()) return hipErrorInvalidHandle;
  record->mark = streams::submit_host(stream, [record] {
    record->nanoseconds = std::chrono::steady_clock::now().time_since_epoch().count();
  });
  found->second->last = record;
  return hipSuccess;
}

bool recorded(hipEvent_t event, std::shared_ptr<Recorded>* last, unsigned* flags) {
  const std::lock_guard<std::mutex> held(table().mutex);
  const auto found = table().live.find(event);
  if (found == table().live.end()) return false;
  *last = found->second->last;
  if (flags) *flags = found->second->flags;
  return true;
}

}  // namespace hipemu::events
