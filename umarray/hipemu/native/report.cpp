#include "report.h"

#include <cinttypes>
#include <cstdio>

#include "calls.h"
#include "config.h"
#include "counters.h"
#include "host_view.h"
#include "space.h"

namespace hipemu::report {
namespace {

uint64_t value(int place, counters::Name name) { return counters::values[place + 1][name].load(); }

void line(const char* what, int place, counters::Name name, bool bytes) {
  const uint64_t n = value(place, name);
  if (!n) return;
  if (bytes) {
    std::fprintf(stderr, "    %-34s %12.3f MiB  %10" PRIu64 " pages\n", what, static_cast<double>(n) / (1 << 20),
                 n / config().page);
  } else {
    std::fprintf(stderr, "    %-34s %12" PRIu64 "\n", what, n);
  }
}

void place(int p) {
  line("faults", p, counters::faults, false);
  line("pages made here", p, counters::new_pages, false);
  line("from the host", p, counters::bytes_to_device, true);
  line("to the host", p, counters::bytes_to_host, true);
  line("from other devices", p, counters::bytes_between_devices, true);
  line("prefetched to here", p, counters::prefetched_bytes, true);
  line("evicted from here", p, counters::evicted_bytes, true);
  line("copies made here", p, counters::duplicated_bytes, true);
  line("copies given up here", p, counters::dropped_bytes, true);
  line("mapped from elsewhere", p, counters::mapped_bytes, true);
  std::fprintf(stderr, "    %-34s %12.3f ms\n", "modelled time of all this",
               static_cast<double>(value(p, counters::modelled_nanoseconds)) * 1e-6);
}

}  // namespace

void print() {
  std::fprintf(stderr, "hipemu: %s, %d device(s) of %zu MiB, pages of %zu KiB, XNACK %s, host faults by %s\n",
               config().profile.c_str(), config().devices, config().memory >> 20, config().page >> 10,
               config().xnack ? "on" : "off", host_view::way());
  std::fprintf(stderr, "  host\n");
  place(HOST);
  for (int d = 0; d < config().devices; ++d) {
    std::fprintf(stderr, "  device %d\n", d);
    place(d);
  }
  std::fprintf(stderr, "  runtime calls: %" PRIu64 " (", calls::count(nullptr));
  const char* between = "";
  for (const char* name : {"hipMalloc", "hipMallocManaged", "hipFree", "hipMemPrefetchAsync", "hipMemAdvise",
                           "hipModuleLaunchKernel"}) {
    std::fprintf(stderr, "%s%s %" PRIu64, between, name, calls::count(name));
    between = ", ";
  }
  std::fprintf(stderr, ")\n");
}

}  // namespace hipemu::report
