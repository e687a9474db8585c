// Settings of the emulated machine, read once from the environment (HIPEMU_*) that the launcher writes.
#pragma once

#include <cstddef>
#include <string>

namespace hipemu {

struct Config {
  int devices = 1;
  size_t memory = size_t{4} << 30;    // bytes of each device
  size_t page = size_t{64} << 10;     // bytes of a migrating page
  size_t reserve = 0;                 // bytes of address space for all allocations together
  bool xnack = true;                  // devices fault and migrate
  bool strict = false;                // answer as real ROCm 5 does even where CuPy cannot live with it
  bool blocking_prefetch = false;     // hipMemPrefetchAsync returns when the pages have moved (ROCm 6.1)
  bool report = false;                // print the counters at exit
  bool verbose = false;
  std::string profile = "mi210";
  std::string trace;                  // file that gets one line an API call
  std::string faults = "auto";        // host side of paging: auto, userfaultfd, mprotect
};

__attribute__((visibility("default"))) const Config& config();

}  // namespace hipemu
