// How often each API function was called: what a test reads to count driver allocations.
//
// Every exported function opens with HIPEMU_CALL(name). A site registers itself on its first call and then costs one
// relaxed atomic increment. With HIPEMU_TRACE each call also writes one line to the trace file.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace hipemu::calls {

// Exported where hiprtc is a library of its own: it registers its sites here.
struct __attribute__((visibility("default"))) Site {
  explicit Site(const char* name);
  const char* name;
  std::atomic<uint64_t> count{0};
  Site* next = nullptr;

  void hit() {
    count.fetch_add(1, std::memory_order_relaxed);
    if (tracing()) trace(name);
  }
  static bool tracing();
  static void trace(const char* name);
};

// Sum over the sites of one function name (or of all, for nullptr).
uint64_t count(const char* name);
// "name count" lines, for all functions called so far.
std::string table();

}  // namespace hipemu::calls

#define HIPEMU_CALL(name)                                                   \
  static ::hipemu::calls::Site& hipemu_site = *new ::hipemu::calls::Site(#name); \
  hipemu_site.hit()
