#include "calls.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>

#include "config.h"

namespace hipemu::calls {
namespace {

std::atomic<Site*> sites{nullptr};

std::FILE* trace_file() {
  static std::FILE* const file = config().trace.empty() ? nullptr : std::fopen(config().trace.c_str(), "a");
  return file;
}

}  // namespace

Site::Site(const char* function) : name(function) {
  Site* head = sites.load();
  do {
    next = head;
  } while (!sites.compare_exchange_weak(head, this));
}

bool Site::tracing() {
  static const bool on = trace_file() != nullptr;
  return on;
}

void Site::trace(const char* function) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const double seconds = std::chrono::duration<double>(now).count();
  std::fprintf(trace_file(), "%.6f %d %s\n", seconds, static_cast<int>(gettid()), function);
  std::fflush(trace_file());
}

uint64_t count(const char* name) {
  uint64_t sum = 0;
  for (const Site* site = sites.load(); site; site = site->next) {
    if (!name || !std::strcmp(site->name, name)) sum += site->count.load(std::memory_order_relaxed);
  }
  return sum;
}

std::string table() {
  std::map<std::string, uint64_t> sums;
  for (const Site* site = sites.load(); site; site = site->next) {
    sums[site->name] += site->count.load(std::memory_order_relaxed);
  }
  std::string lines;
  for (const auto& [name, n] : sums) lines += name + " " + std::to_string(n) + "\n";
  return lines;
}

}  // namespace hipemu::calls
