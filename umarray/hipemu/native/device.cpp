#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "attributes.h"
#include "config.h"

namespace hipemu::device {
namespace {

// From AMD's and NVIDIA's data sheets; `h200` describes the test card's memory system as if it were a HIP device.
constexpr Profile PROFILES[] = {
    {"mi210", "AMD Instinct MI210", "gfx90a", 910, 9, 0, 104, 1700000, 1600000, 4096, 8 << 20, false},
    {"mi250x", "AMD Instinct MI250X", "gfx90a", 910, 9, 0, 110, 1700000, 1600000, 4096, 8 << 20, false},
    {"mi300x", "AMD Instinct MI300X", "gfx942", 940, 9, 4, 304, 2100000, 2600000, 8192, 4 << 20, false},
    {"mi300a", "AMD Instinct MI300A", "gfx942", 940, 9, 4, 228, 2100000, 2600000, 8192, 4 << 20, true},
    {"h200", "Emulated H200-like device", "gfx90a", 910, 9, 0, 132, 1980000, 3201000, 6144, 50 << 20, false},
};

thread_local int this_device = 0;

std::mutex peers_mutex;
bool peers[8][8];

}  // namespace

const Profile& profile() {
  static const Profile& chosen = [&]() -> const Profile& {
    for (const Profile& p : PROFILES) {
      if (config().profile == p.name) return p;
    }
    std::fprintf(stderr, "hipemu: HIPEMU_PROFILE=%s: wanted mi210, mi250x, mi300x, mi300a or h200\n",
                 config().profile.c_str());
    std::_Exit(2);
  }();
  return chosen;
}

int count() { return config().devices; }
bool valid(int device) { return device >= 0 && device < count(); }
int current() { return this_device; }
void set_current(int device) { this_device = device; }

void fill_properties(int device, hipDeviceProp_t* p) {
  const Profile& card = profile();
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "%s (emulated)", card.device_name);
  std::snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s:sramecc+:xnack%c", card.arch, config().xnack ? '+' : '-');
  p->totalGlobalMem = config().memory;
  p->sharedMemPerBlock = 64 << 10;
  p->regsPerBlock = 65536;
  p->warpSize = 64;
  p->maxThreadsPerBlock = 1024;
  for (int& n : p->maxThreadsDim) n = 1024;
  for (int& n : p->maxGridSize) n = 2147483647;
  p->clockRate = card.clock_khz;
  p->memoryClockRate = card.memory_clock_khz;
  p->memoryBusWidth = card.bus_bits;
  p->totalConstMem = 2147483647;
  p->major = card.major;
  p->minor = card.minor;
  p->multiProcessorCount = card.compute_units;
  p->l2CacheSize = card.l2_bytes;
  p->maxThreadsPerMultiProcessor = 2048;
  p->clockInstructionRate = 1000000;
  p->arch.hasGlobalInt32Atomics = p->arch.hasGlobalFloatAtomicExch = 1;
  p->arch.hasSharedInt32Atomics = p->arch.hasSharedFloatAtomicExch = p->arch.hasFloatAtomicAdd = 1;
  p->arch.hasGlobalInt64Atomics = p->arch.hasSharedInt64Atomics = p->arch.hasDoubles = 1;
  p->arch.hasWarpVote = p->arch.hasWarpBallot = p->arch.hasWarpShuffle = 1;
  p->arch.hasThreadFenceSystem = p->arch.has3dGrid = 1;
  p->concurrentKernels = 1;
  p->pciDomainID = 0;
  p->pciBusID = 3 + device;
  p->pciDeviceID = 0;
  p->maxSharedMemoryPerMultiProcessor = 64 << 10;
  p->canMapHostMemory = 1;
  p->gcnArch = card.arch_number;
  p->integrated = card.integrated;
  p->cooperativeLaunch = p->cooperativeMultiDeviceLaunch = 1;
  p->maxTexture1DLinear = p->maxTexture1D = 16384;
  p->maxTexture2D[0] = p->maxTexture2D[1] = 16384;
  p->maxTexture3D[0] = p->maxTexture3D[1] = 16384;
  p->maxTexture3D[2] = 8192;
  p->memPitch = 2147483647;
  p->textureAlignment = p->texturePitchAlignment = 256;
  p->ECCEnabled = 1;
  p->isLargeBar = 1;
  p->managedMemory = 1;
  p->concurrentManagedAccess = 1;
  p->directManagedMemAccessFromHost = card.integrated && config().xnack;
  p->pageableMemoryAccess = config().xnack;
  p->pageableMemoryAccessUsesHostPageTables = 0;
}

hipError_t attribute_value(int number, int device, int* value) {
  hipDeviceProp_t p;
  fill_properties(device, &p);
  switch (number) {
    case attribute::EccEnabled: *value = p.ECCEnabled; break;
    case attribute::CanMapHostMemory: *value = p.canMapHostMemory; break;
    case attribute::ClockRate: *value = p.clockRate; break;
    case attribute::ComputeMode: *value = p.computeMode; break;
    case attribute::ConcurrentKernels: *value = p.concurrentKernels; break;
    case attribute::ConcurrentManagedAccess: *value = p.concurrentManagedAccess; break;
    case attribute::CooperativeLaunch: *value = p.cooperativeLaunch; break;
    case attribute::CooperativeMultiDeviceLaunch: *value = p.cooperativeMultiDeviceLaunch; break;
    case attribute::DirectManagedMemAccessFromHost: *value = p.directManagedMemAccessFromHost; break;
    case attribute::Integrated: *value = p.integrated; break;
    case attribute::IsMultiGpuBoard: *value = p.isMultiGpuBoard; break;
    case attribute::KernelExecTimeout: *value = p.kernelExecTimeoutEnabled; break;
    case attribute::L2CacheSize: *value = p.l2CacheSize; break;
    case attribute::ComputeCapabilityMajor: *value = p.major; break;
    case attribute::ComputeCapabilityMinor: *value = p.minor; break;
    case attribute::ManagedMemory: *value = p.managedMemory; break;
    case attribute::MaxBlockDimX: *value = p.maxThreadsDim[0]; break;
    case attribute::MaxBlockDimY: *value = p.maxThreadsDim[1]; break;
    case attribute::MaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
    case attribute::MaxGridDimX: *value = p.maxGridSize[0]; break;
    case attribute::MaxGridDimY: *value = p.maxGridSize[1]; break;
    case attribute::MaxGridDimZ: *value = p.maxGridSize[2]; break;
    case attribute::MaxTexture1DWidth: *value = p.maxTexture1D; break;
    case attribute::MaxTexture1DLinear: *value = p.maxTexture1DLinear; break;
    case attribute::MaxTexture2DLinear:
    case attribute::MaxTexture2DMipmap:
    case attribute::MaxTexture2DWidth: *value = p.maxTexture2D[0]; break;
    case attribute::MaxTexture2DHeight: *value = p.maxTexture2D[1]; break;
    case attribute::MaxTexture3DWidth: *value = p.maxTexture3D[0]; break;
    case attribute::MaxTexture3DHeight: *value = p.maxTexture3D[1]; break;
    case attribute::MaxTexture3DDepth: *value = p.maxTexture3D[2]; break;
    case attribute::MaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case attribute::MaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case attribute::MaxPitch: *value = static_cast<int>(p.memPitch); break;
    case attribute::MemoryBusWidth: *value = p.memoryBusWidth; break;
    case attribute::MemoryClockRate: *value = p.memoryClockRate; break;
    case attribute::MultiprocessorCount:
    case attribute::PhysicalMultiProcessorCount: *value = p.multiProcessorCount; break;
    case attribute::PageableMemoryAccess: *value = p.pageableMemoryAccess; break;
    case attribute::PageableMemoryAccessUsesHostPageTables: *value = 0; break;
    case attribute::PciBusId: *value = p.pciBusID; break;
    case attribute::PciDeviceId: *value = p.pciDeviceID; break;
    case attribute::PciDomainID: *value = p.pciDomainID; break;
    case attribute::MaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case attribute::MaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case attribute::MaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(p.maxSharedMemoryPerMultiProcessor);
      break;
    case attribute::TccDriver: *value = p.tccDriver; break;
    case attribute::TextureAlignment: *value = static_cast<int>(p.textureAlignment); break;
    case attribute::TexturePitchAlignment: *value = static_cast<int>(p.texturePitchAlignment); break;
    case attribute::TotalConstantMemory: *value = static_cast<int>(p.totalConstMem); break;
    case attribute::WarpSize: *value = p.warpSize; break;
    case attribute::UnifiedAddressing: *value = 1; break;
    case attribute::MemoryPoolsSupported: *value = 0; break;
    case attribute::ClockInstructionRate: *value = p.clockInstructionRate; break;
    case attribute::GcnArch: *value = p.gcnArch; break;
    case attribute::IsLargeBar: *value = p.isLargeBar; break;
    case attribute::AsicRevision: *value = p.asicRevision; break;
    case attribute::CanUseStreamWaitValue: *value = 0; break;
    case attribute::ImageSupport: *value = 0; break;
    case attribute::FineGrainSupport: *value = 1; break;
    default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

bool peer_enabled(int from, int to) {
  const std::lock_guard<std::mutex> held(peers_mutex);
  return from == to || peers[from][to];
}

hipError_t set_peer(int from, int to, bool enable) {
  const std::lock_guard<std::mutex> held(peers_mutex);
  if (peers[from][to] == enable) return enable ? hipErrorPeerAccessAlreadyEnabled : hipErrorPeerAccessNotEnabled;
  peers[from][to] = enable;
  return hipSuccess;
}

}  // namespace hipemu::device
