#include "residency.h"

#include <mutex>

#include "advice.h"
#include "config.h"
#include "device.h"

namespace hipemu::residency {
namespace {

std::mutex mutex;
size_t taken[8];

}  // namespace

bool take(int device, size_t bytes) {
  const std::lock_guard<std::mutex> held(mutex);
  if (bytes > config().memory - taken[device]) return false;
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
  for (int place = HOST; place < device::count(); ++place) {
    Space::get().protect(place, offset, bytes, PROT_READ | PROT_WRITE);
  }
}

void end(size_t offset, size_t bytes) { advice::forget(offset, bytes); }
bool fault(int, size_t, bool) { return false; }
bool borrow(int, size_t, bool) { return false; }
void give_back_borrowed(int) {}
void populate(size_t, size_t, int) {}
void prefetch(size_t, size_t, int) {}
void advice_changed(size_t, size_t) {}

}  // namespace hipemu::residency
