// The device side of HIP for g++: included before every kernel source, as hiprtc's built-ins are.
#pragma once

#include <cfloat>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include <math.h>
#include <stdlib.h>

#include "hipemu_kernel.h"
#include "assert.h"

// CuPy's complex numbers define these as constants.
#undef FLT_MIN
#undef FLT_MAX
#undef FLT_EPSILON
#undef FLT_MAX_EXP
#undef FLT_MANT_DIG
#undef DBL_MIN
#undef DBL_MAX
#undef DBL_EPSILON
#undef DBL_MAX_EXP
#undef DBL_MANT_DIG

#define __HIPCC__ 1
#define __HIPCC_RTC__ 1
#define __HIP__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1
#define __HIP_ARCH_HAS_DOUBLES__ 1
#define HIPEMU 1

#define __global__ __attribute__((used))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (hipemu_current->thread)
#define blockIdx (hipemu_current->block)
#define blockDim (hipemu_current->block_dim)
#define gridDim (hipemu_current->grid_dim)
#define warpSize 64

using uint = unsigned int;
using ushort = unsigned short;
using uchar = unsigned char;
using ulong = unsigned long;
using longlong = long long;
using ulonglong = unsigned long long;

#include "hipemu_vector.h"
#include "hipemu_half.h"
#include "hipemu_math.h"
#include "hipemu_bits.h"
#include "hipemu_atomic.h"
#include "hipemu_warp.h"

struct dim3 {
  uint32_t x, y, z;
  constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};

// `extern __shared__ T name[];` is rewritten to one of these: a pointer inside a function, this outside one.
template <class T>
struct hipemu_dynamic {
  operator T*() const { return static_cast<T*>(hipemu_current->dynamic_shared); }
  T& operator[](ptrdiff_t i) const { return static_cast<T*>(hipemu_current->dynamic_shared)[i]; }
};

// A kernel's description, made from its type. A variable has one too (name expressions may name variables).
template <auto K, class... A>
struct hipemu_entry {
  static constexpr size_t sizes[sizeof...(A) + 1] = {sizeof(A)..., 0};

  template <size_t... I>
  static void loop([[maybe_unused]] void** arguments, std::index_sequence<I...>) {
    while (hipemu_begin(hipemu_current)) K(*static_cast<std::remove_reference_t<A>*>(arguments[I])...);
  }
  static void run(void** arguments) { loop(arguments, std::index_sequence_for<A...>{}); }
};

template <auto K, class... A>
constexpr hipemu_kernel hipemu_describe_function(void (*)(A...), int flat) {
  return {&hipemu_entry<K, A...>::run, hipemu_entry<K, A...>::sizes, static_cast<int>(sizeof...(A)), flat, nullptr, 0};
}

template <auto K>
hipemu_kernel hipemu_describe(int flat) {
  using T = std::remove_pointer_t<decltype(K)>;
  if constexpr (std::is_function_v<T>) {
    return hipemu_describe_function<K>(K, flat);
  } else {
    return {nullptr, nullptr, 0, 0, const_cast<void*>(static_cast<const volatile void*>(K)), sizeof(T)};
  }
}

#define HIPEMU_KERNEL(name, flat) \
  extern "C" __attribute__((used)) hipemu_kernel hipemu_kernel_##name = hipemu_describe<&name>(flat);
#define HIPEMU_EXPRESSION(number, ...) \
  extern "C" __attribute__((used)) hipemu_kernel hipemu_kernel_hipemu_expression_##number = \
      hipemu_describe<&__VA_ARGS__>(0);
