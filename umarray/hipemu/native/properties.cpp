// What a device says of itself: its properties, in the layout of ROCm 5 and in that of ROCm 6 and later, and its
// attributes, which are the properties by number.
//
// Which numbers have an answer, and what ROCm 7 puts into its newer fields, is as in clr's hip_device_runtime.cpp and
// hip_device.cpp. What is not emulated (memory pools, virtual memory, registered host memory) is said not to be there.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "attributes.h"
#include "config.h"
#include "device.h"
#include "rocm.h"

namespace hipemu::device {
namespace {

constexpr int MOST = 2147483647;

// The fields that both layouts have.
template <class P>
void fill_common(int device, P* p) {
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
  for (int& n : p->maxGridSize) n = rocm::MAJOR == 5 ? MOST : 65536;
  p->maxGridSize[0] = MOST;
  p->clockRate = card.clock_khz;
  p->memoryClockRate = card.memory_clock_khz;
  p->memoryBusWidth = card.bus_bits;
  p->totalConstMem = MOST;
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
  p->integrated = card.integrated;
  p->cooperativeLaunch = p->cooperativeMultiDeviceLaunch = 1;
  p->maxTexture1DLinear = p->maxTexture1D = 16384;
  p->maxTexture2D[0] = p->maxTexture2D[1] = 16384;
  p->maxTexture3D[0] = p->maxTexture3D[1] = 16384;
  p->maxTexture3D[2] = 8192;
  p->memPitch = MOST;
  p->textureAlignment = p->texturePitchAlignment = 256;
  p->isLargeBar = 1;
  p->managedMemory = 1;
  p->concurrentManagedAccess = 1;
  p->directManagedMemAccessFromHost = card.integrated && config().xnack;
  p->pageableMemoryAccess = config().xnack;
  p->pageableMemoryAccessUsesHostPageTables = 0;
}

// Attributes that ROCm 7 answers and ROCm 5 does not: those that its header calls "Cuda only", and some more. For CuPy
// 13, whose numbers are ROCm 4's, this means errors at 47 and 48 and texture limits at 49 to 51 (cupy/cupy issue 7676
// shows all that a card of that time answers), and an error at 14, which default_rng() asks.
bool answer_own(int, const hipDeviceProp_t&, int*) { return false; }

bool answer_own(int number, const hipDeviceProp_tR0600& p, int* value) {
  switch (number) {
    case attribute::AccessPolicyMaxWindowSize: *value = p.accessPolicyMaxWindowSize; return true;
    case attribute::AsyncEngineCount: *value = p.asyncEngineCount; return true;
    case attribute::MaxTexture1DLinear: *value = p.maxTexture1DLinear; return true;
    case attribute::PciDomainID: *value = p.pciDomainID; return true;
    case attribute::UnifiedAddressing: *value = 1; return true;
    case attribute::ClockInstructionRate: *value = p.clockInstructionRate; return true;
    case attribute::IsLargeBar: *value = p.isLargeBar; return true;
    case attribute::CanUseHostPointerForRegisteredMem: *value = p.canUseHostPointerForRegisteredMem; return true;
    case attribute::ComputePreemptionSupported: *value = p.computePreemptionSupported; return true;
    case attribute::DeviceOverlap: *value = p.asyncEngineCount > 0; return true;
    case attribute::GlobalL1CacheSupported: *value = p.globalL1CacheSupported; return true;
    case attribute::HostNativeAtomicSupported: *value = p.hostNativeAtomicSupported; return true;
    case attribute::LocalL1CacheSupported: *value = p.localL1CacheSupported; return true;
    case attribute::LuidDeviceNodeMask: *value = static_cast<int>(p.luidDeviceNodeMask); return true;
    case attribute::MaxBlocksPerMultiProcessor: *value = p.maxBlocksPerMultiProcessor; return true;
    case attribute::MaxSurface1D: *value = p.maxSurface1D; return true;
    case attribute::MaxTexture1DMipmap: *value = p.maxTexture1DMipmap; return true;
    case attribute::MaxTextureCubemap: *value = p.maxTextureCubemap; return true;
    case attribute::MultiGpuBoardGroupID: *value = p.multiGpuBoardGroupID; return true;
    case attribute::PersistingL2CacheMaxSize: *value = p.persistingL2CacheMaxSize; return true;
    case attribute::MaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; return true;
    case attribute::ReservedSharedMemPerBlock: *value = static_cast<int>(p.reservedSharedMemPerBlock); return true;
    case attribute::SharedMemPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); return true;
    case attribute::SharedMemPerMultiprocessor: *value = static_cast<int>(p.sharedMemPerMultiprocessor); return true;
    case attribute::StreamPrioritiesSupported: *value = p.streamPrioritiesSupported; return true;
    case attribute::SurfaceAlignment: *value = static_cast<int>(p.surfaceAlignment); return true;
    case attribute::TotalGlobalMem: *value = static_cast<int>(std::min<size_t>(p.totalGlobalMem, MOST)); return true;
    case attribute::VirtualMemoryManagementSupported: *value = 0; return true;
    case attribute::HostRegisterSupported: *value = p.hostRegisterSupported; return true;
    case attribute::MemoryPoolSupportedHandleTypes: *value = 0; return true;
    case attribute::WallClockRate: *value = 100000; return true;
    case attribute::NumberOfXccs: *value = 1; return true;
    default: return false;
  }
}

}  // namespace

void fill_properties(int device, hipDeviceProp_t* p) {
  fill_common(device, p);
  p->gcnArch = profile().arch_number;
}

void fill_properties(int device, hipDeviceProp_tR0600* p) {
  fill_common(device, p);
  std::snprintf(p->uuid, sizeof p->uuid, "hipemu-%d", device);
  p->sharedMemPerMultiprocessor = p->sharedMemPerBlockOptin = p->sharedMemPerBlock;
  p->regsPerMultiprocessor = p->regsPerBlock;
  p->maxBlocksPerMultiProcessor = p->maxThreadsPerMultiProcessor / p->warpSize;
  p->maxTexture1DMipmap = p->maxTexture1DLinear;
  p->maxTexture2DLinear[0] = p->maxTexture2DLinear[1] = p->maxTexture2D[0];
  p->maxTexture2DLinear[2] = 16 * p->maxTexture2D[0];
  p->surfaceAlignment = p->textureAlignment;
  p->asyncEngineCount = 8;
  p->deviceOverlap = 1;
  p->unifiedAddressing = p->directManagedMemAccessFromHost;
  p->canUseHostPointerForRegisteredMem = p->integrated;
  p->persistingL2CacheMaxSize = p->l2CacheSize;
  p->streamPrioritiesSupported = 1;
  p->globalL1CacheSupported = p->localL1CacheSupported = 1;
}

hipError_t attribute_value(int number, int device, int* value) {
  std::conditional_t<rocm::MAJOR == 5, hipDeviceProp_t, hipDeviceProp_tR0600> p;
  fill_properties(device, &p);
  if (answer_own(number, p, value)) return hipSuccess;
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
    case attribute::MaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case attribute::MaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case attribute::MaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(p.maxSharedMemoryPerMultiProcessor);
      break;
    case attribute::TextureAlignment: *value = static_cast<int>(p.textureAlignment); break;
    case attribute::TexturePitchAlignment: *value = static_cast<int>(p.texturePitchAlignment); break;
    case attribute::TotalConstantMemory: *value = static_cast<int>(p.totalConstMem); break;
    case attribute::WarpSize: *value = p.warpSize; break;
    case attribute::MemoryPoolsSupported: *value = 0; break;
    case attribute::AsicRevision: *value = p.asicRevision; break;
    case attribute::CanUseStreamWaitValue: *value = 0; break;
    case attribute::ImageSupport: *value = 0; break;
    case attribute::FineGrainSupport: *value = 1; break;
    default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

}  // namespace hipemu::device
