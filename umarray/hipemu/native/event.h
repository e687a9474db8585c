// Events: a mark on a stream, and the time at which it was reached.
#pragma once

#include <atomic>
#include <memory>

#include "stream.h"

namespace hipemu {

struct Recorded {
  Mark mark;
  std::atomic<int64_t> nanoseconds{0};
};

namespace events {

hipError_t create(unsigned flags, hipEvent_t* event);
hipError_t destroy(hipEvent_t event);
hipError_t record(hipEvent_t event, const StreamPtr& stream);

// What was recorded last; null if nothing was. False: no such event.
bool recorded(hipEvent_t event, std::shared_ptr<Recorded>* last, unsigned* flags = nullptr);

}  // namespace events
}  // namespace hipemu
