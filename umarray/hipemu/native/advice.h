// What a program has said about pages: advice and the last prefetch. What is done with it is residency's.
//
// Kept for each 4 KiB, as a real driver does, however large the pages that migrate are here. A migrating page follows
// only what all of its parts say: advice on a part of one is remembered and read back, but moves nothing.
//
// What each advice does to a fault, on a real device and here. "Attribute" is what the HIP runtime turns it into
// (ROCm's clr, rocclr/device/rocm/rocdevice.cpp, Device::SetSvmAttributesInt, for the kernel); "kernel" is Linux,
// drivers/gpu/drm/amd/amdkfd/kfd_svm.c, svm_range_best_restore_location, which says at each device fault where the
// page should be; "CUDA" is its driver API's documentation of cuMemAdvise, whose words HIP's repeats. The order is the
// kernel's: the first that holds decides. See serve() in residency.cpp.
//
//   preferred location d    attribute PREFERRED_LOCATION. Kernel: `preferred_loc == gpuid`: a fault of d brings the
//                           page to d. A fault of another device in the same hive brings it to d as well, and maps it
//                           for the other; one outside of the hive falls through. Here: all devices are one hive.
//   preferred location CPU  Kernel: `preferred_loc == KFD_IOCTL_SVM_LOCATION_SYSMEM`: the page goes to, or stays in,
//                           system memory, and the device reaches it over the bus. CUDA: the same. Here too.
//   accessed-by d           attribute AGENT_ACCESSIBLE_IN_PLACE ("access will not incur a page fault and will not cause
//                           access based migration", hsa_ext_amd.h). Kernel: `bitmap_aip`: the page stays where it is,
//                           on the CPU or in the hive. CUDA: the mapping is made at once and kept up to date after
//                           migrations. Here: both; the CPU as d has no effect on a fault.
//   nothing said            Kernel: `bitmap_access`, which every device has under XNACK: the page migrates to the
//                           device that touched it.
//   read-mostly             attribute READ_MOSTLY (READ_ONLY in the first ROCm 5). Kernel: a flag of the mapping ("may
//                           allow similar optimizations as RO, but writes fault", kfd_ioctl.h); no copies are made
//                           today, so a page still moves. CUDA: "any read accesses from any processor will create a
//                           read-only copy"; a write invalidates all copies but the writer's; it overrides a
//                           preferred location. HIP's documentation promises this, and it is what is done here.
//                           Beside accessed-by the mapping stands, and no copy is made.
//   coarse grain            attribute GLOBAL_FLAG: coherence only. It moves nothing, there or here.
//
// A CPU fault always brings the page to system memory (kfd_migrate.c, svm_migrate_to_ram), whatever the advice; a
// device that is full maps the page where it is (svm_range_restore_pages: "falling back to system memory").
//
// Reading a range back follows the runtime's documentation: read-mostly is 1 only if every page has it; a preferred
// or last prefetch location that differs between pages reads as "invalid device"; accessed-by lists the devices that
// every page names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi.h"
#include "space.h"

namespace hipemu::advice {

// All zero is the state of a fresh page. Places are kept as place + 2, so that 0 says "none".
struct Hint {
  uint8_t preferred = 0;
  uint8_t last_prefetch = 0;
  uint16_t accessed_by = 0;  // bit place + 1
  bool read_mostly = false;
  bool coarse_grain = false;

  int preferred_place() const { return static_cast<int>(preferred) - 2; }  // hipInvalidDeviceId for none
  bool accessed(int place) const { return accessed_by >> (place + 1) & 1; }
};

// What holds for all of a migrating page; page = offset / config().page.
Hint hint(size_t page);

void forget(size_t offset, size_t bytes);
void set(size_t offset, size_t bytes, hipMemoryAdvise advice, int place);
void set_prefetched(size_t offset, size_t bytes, int place);
hipError_t read(void* data, size_t size, hipMemRangeAttribute attribute, size_t offset, size_t bytes);

}  // namespace hipemu::advice
