// hipemu_*: what tests and tools read and set. Not part of HIP; see umarray/hipemu/control.py.
#include <cstring>

#include "abi.h"
#include "allocations.h"
#include "calls.h"
#include "errors.h"
#include "residency.h"
#include "stream.h"

using namespace hipemu;

// Calls of one API function so far, or of all of them for a null name.
HIPEMU_EXPORT uint64_t hipemu_calls(const char* name) { return calls::count(name); }

// "name count" lines. Returns the length; writes as much as fits, with a final zero.
HIPEMU_EXPORT size_t hipemu_calls_table(char* text, size_t room) {
  const std::string lines = calls::table();
  if (room) {
    const size_t n = lines.size() < room - 1 ? lines.size() : room - 1;
    std::memcpy(text, lines.data(), n);
    text[n] = 0;
  }
  return lines.size();
}

HIPEMU_EXPORT uint64_t hipemu_live_allocations() { return allocations::totals().live; }
HIPEMU_EXPORT uint64_t hipemu_used_bytes(int device) { return residency::used(device); }
HIPEMU_EXPORT void hipemu_clear_error() { errors::clear_sticky(); }
