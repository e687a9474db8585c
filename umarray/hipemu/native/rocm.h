// The version of ROCm that this build answers as. HIPEMU_ROCM (5 or 7) comes from umarray/hipemu/build.py.
//
// What differs: names and symbol versions (symbols/, exports_*.map; hiprtc is a library of its own in 7), memory types
// and device properties (abi.h), which attributes have an answer (properties.cpp), pointers that are not ours
// (api_memory.cpp), what a bad launch returns (api_module.cpp), hipBLAS's types (libraries/blas_types.h).
#pragma once

#ifndef HIPEMU_ROCM
#error "HIPEMU_ROCM says which ROCm to build: 5 or 7"
#endif

namespace hipemu::rocm {

constexpr int MAJOR = HIPEMU_ROCM;
static_assert(MAJOR == 5 || MAJOR == 7, "unknown version of ROCm");

// hipRuntimeGetVersion of ROCm 5.0.0 and 7.0.0 (HIP 5.0.13601, 7.0.51831): what the wheels were built with.
constexpr int VERSION = MAJOR == 5 ? 50013601 : 70051831;

// The runtime's file name: what kernels are linked against, and what the preloaded library looks for.
constexpr const char* RUNTIME = MAJOR == 5 ? "libamdhip64.so.5" : "libamdhip64.so.7";

}  // namespace hipemu::rocm
