// The numbers of hipDeviceAttribute_t in ROCm 5 and 7, in their order: those from 89 and from 10017 on came after 5.0,
// and 64, 86, 10001, 10003, 10004 have no meaning since 6. CuPy 13 asks for some of them by their ROCm 4 numbers:
// 47 to 51 for managed memory are texture limits here, and are answered as such.
#pragma once

namespace hipemu::attribute {

enum Number : int {
  EccEnabled = 0, AccessPolicyMaxWindowSize = 1, AsyncEngineCount = 2, CanMapHostMemory = 3,
  CanUseHostPointerForRegisteredMem = 4, ClockRate = 5, ComputeMode = 6, ComputePreemptionSupported = 7,
  ConcurrentKernels = 8, ConcurrentManagedAccess = 9, CooperativeLaunch = 10, CooperativeMultiDeviceLaunch = 11,
  DeviceOverlap = 12, DirectManagedMemAccessFromHost = 13, GlobalL1CacheSupported = 14,
  HostNativeAtomicSupported = 15, Integrated = 16, IsMultiGpuBoard = 17, KernelExecTimeout = 18, L2CacheSize = 19,
  LocalL1CacheSupported = 20, Luid = 21, LuidDeviceNodeMask = 22, ComputeCapabilityMajor = 23, ManagedMemory = 24,
  MaxBlocksPerMultiProcessor = 25, MaxBlockDimX = 26, MaxBlockDimY = 27, MaxBlockDimZ = 28, MaxGridDimX = 29,
  MaxGridDimY = 30, MaxGridDimZ = 31, MaxSurface1D = 32, MaxSurface1DLayered = 33, MaxSurface2D = 34,
  MaxSurface2DLayered = 35, MaxSurface3D = 36, MaxSurfaceCubemap = 37, MaxSurfaceCubemapLayered = 38,
  MaxTexture1DWidth = 39, MaxTexture1DLayered = 40, MaxTexture1DLinear = 41, MaxTexture1DMipmap = 42,
  MaxTexture2DWidth = 43, MaxTexture2DHeight = 44, MaxTexture2DGather = 45, MaxTexture2DLayered = 46,
  MaxTexture2DLinear = 47, MaxTexture2DMipmap = 48, MaxTexture3DWidth = 49, MaxTexture3DHeight = 50,
  MaxTexture3DDepth = 51, MaxTexture3DAlt = 52, MaxTextureCubemap = 53, MaxTextureCubemapLayered = 54,
  MaxThreadsDim = 55, MaxThreadsPerBlock = 56, MaxThreadsPerMultiProcessor = 57, MaxPitch = 58, MemoryBusWidth = 59,
  MemoryClockRate = 60, ComputeCapabilityMinor = 61, MultiGpuBoardGroupID = 62, MultiprocessorCount = 63, Name = 64,
  PageableMemoryAccess = 65, PageableMemoryAccessUsesHostPageTables = 66, PciBusId = 67, PciDeviceId = 68,
  PciDomainID = 69, PersistingL2CacheMaxSize = 70, MaxRegistersPerBlock = 71, MaxRegistersPerMultiprocessor = 72,
  ReservedSharedMemPerBlock = 73, MaxSharedMemoryPerBlock = 74, SharedMemPerBlockOptin = 75,
  SharedMemPerMultiprocessor = 76, SingleToDoublePrecisionPerfRatio = 77, StreamPrioritiesSupported = 78,
  SurfaceAlignment = 79, TccDriver = 80, TextureAlignment = 81, TexturePitchAlignment = 82, TotalConstantMemory = 83,
  TotalGlobalMem = 84, UnifiedAddressing = 85, Uuid = 86, WarpSize = 87, MemoryPoolsSupported = 88,
  VirtualMemoryManagementSupported = 89, HostRegisterSupported = 90, MemoryPoolSupportedHandleTypes = 91,
  ClockInstructionRate = 10000, Arch = 10001, MaxSharedMemoryPerMultiprocessor = 10002, GcnArch = 10003,
  GcnArchName = 10004, HdpMemFlushCntl = 10005, HdpRegFlushCntl = 10006, CooperativeMultiDeviceUnmatchedFunc = 10007,
  CooperativeMultiDeviceUnmatchedGridDim = 10008, CooperativeMultiDeviceUnmatchedBlockDim = 10009,
  CooperativeMultiDeviceUnmatchedSharedMem = 10010, IsLargeBar = 10011, AsicRevision = 10012,
  CanUseStreamWaitValue = 10013, ImageSupport = 10014, PhysicalMultiProcessorCount = 10015, FineGrainSupport = 10016,
  WallClockRate = 10017, NumberOfXccs = 10018,
};

}  // namespace hipemu::attribute
