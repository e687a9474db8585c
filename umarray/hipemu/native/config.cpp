#include "config.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "report.h"

namespace hipemu {
namespace {

[[noreturn]] void refuse(const char* name, const char* value, const char* wanted) {
  std::fprintf(stderr, "hipemu: %s=%s: %s\n", name, value, wanted);
  std::fflush(stderr);
  _exit(2);
}

size_t bytes(const char* name, size_t fallback, size_t least) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end || value < least) refuse(name, text, "wanted a number of bytes, and not so few");
  return static_cast<size_t>(value);
}

bool flag(const char* name, bool fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  if (!std::strcmp(text, "1") || !std::strcmp(text, "on")) return true;
  if (!std::strcmp(text, "0") || !std::strcmp(text, "off")) return false;
  refuse(name, text, "wanted on, off, 1 or 0");
}

std::string words(const char* name, const char* fallback) {
  const char* text = std::getenv(name);
  return text && *text ? text : fallback;
}

Config read() {
  Config c;
  c.devices = static_cast<int>(bytes("HIPEMU_DEVICES", 1, 1));
  if (c.devices > 8) refuse("HIPEMU_DEVICES", std::getenv("HIPEMU_DEVICES"), "wanted 1 to 8");
  c.page = bytes("HIPEMU_PAGE", c.page, 4096);
  if (c.page & (c.page - 1)) refuse("HIPEMU_PAGE", std::getenv("HIPEMU_PAGE"), "wanted a power of two");
  c.memory = bytes("HIPEMU_MEMORY", c.memory, 16 * c.page);
  c.memory &= ~(c.page - 1);
  const size_t all = c.memory * static_cast<size_t>(c.devices) * 4;
  const size_t least = size_t{64} << 30;
  c.reserve = bytes("HIPEMU_RESERVE", all > least ? all : least, c.memory) & ~(c.page - 1);
  c.xnack = flag("HIPEMU_XNACK", c.xnack);
  c.strict = flag("HIPEMU_STRICT", c.strict);
  c.blocking_prefetch = flag("HIPEMU_BLOCKING_PREFETCH", c.blocking_prefetch);
  c.report = flag("HIPEMU_REPORT", c.report);
  c.verbose = flag("HIPEMU_VERBOSE", c.verbose);
  c.profile = words("HIPEMU_PROFILE", "mi210");
  c.trace = words("HIPEMU_TRACE", "");
  c.faults = words("HIPEMU_FAULTS", "auto");
  return c;
}

}  // namespace

const Config& config() {
  static const Config* const made = [] {
    auto* c = new Config(read());
    if (c->report) std::atexit(report::print);
    return c;
  }();
  return *made;
}

}  // namespace hipemu
