// float16: __half, with arithmetic through float.
#pragma once

#include "hipemu_half_bits.h"

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short bits;

  __half() = default;
  __half(const __half&) = default;
  __half& operator=(const __half&) = default;
  __half(float v) : bits(hipemu_float_to_half(v)) {}
  __half(double v) : bits(hipemu_double_to_half(v)) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  __half(T v) : bits(hipemu_double_to_half(static_cast<double>(v))) {}
  __half(const __half_raw& v) : bits(v.x) {}

  operator float() const { return hipemu_half_to_float(bits); }
  operator __half_raw() const { return {bits}; }

  __half operator-() const { return __half_raw{static_cast<unsigned short>(bits ^ 0x8000u)}; }
  __half& operator+=(__half o) { return *this = __half(float(*this) + float(o)); }
  __half& operator-=(__half o) { return *this = __half(float(*this) - float(o)); }
  __half& operator*=(__half o) { return *this = __half(float(*this) * float(o)); }
  __half& operator/=(__half o) { return *this = __half(float(*this) / float(o)); }
};

inline __half operator+(__half a, __half b) { return a += b; }
inline __half operator-(__half a, __half b) { return a -= b; }
inline __half operator*(__half a, __half b) { return a *= b; }
inline __half operator/(__half a, __half b) { return a /= b; }
inline bool operator==(__half a, __half b) { return float(a) == float(b); }
inline bool operator!=(__half a, __half b) { return float(a) != float(b); }
inline bool operator<(__half a, __half b) { return float(a) < float(b); }
inline bool operator>(__half a, __half b) { return float(a) > float(b); }
inline bool operator<=(__half a, __half b) { return float(a) <= float(b); }
inline bool operator>=(__half a, __half b) { return float(a) >= float(b); }

using half = __half;

struct alignas(4) __half2 {
  __half x, y;
};
using half2 = __half2;

inline __half __float2half(float v) { return __half(v); }
inline __half __float2half_rn(float v) { return __half(v); }
inline __half __double2half(double v) { return __half(v); }
inline float __half2float(__half v) { return float(v); }
inline unsigned short __half_as_ushort(__half v) { return v.bits; }
inline short __half_as_short(__half v) { return static_cast<short>(v.bits); }
inline __half __ushort_as_half(unsigned short v) { return __half_raw{v}; }
inline __half __short_as_half(short v) { return __half_raw{static_cast<unsigned short>(v)}; }
inline __half __hadd(__half a, __half b) { return a + b; }
inline __half __hsub(__half a, __half b) { return a - b; }
inline __half __hmul(__half a, __half b) { return a * b; }
inline __half __hdiv(__half a, __half b) { return a / b; }
inline __half __hfma(__half a, __half b, __half c) { return __half(std::fma(double(a), double(b), double(c))); }
inline __half __hneg(__half a) { return -a; }
inline bool __hisnan(__half a) { return (a.bits & 0x7fffu) > 0x7c00u; }
inline bool __hisinf(__half a) { return (a.bits & 0x7fffu) == 0x7c00u; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline float __low2float(__half2 v) { return float(v.x); }
inline float __high2float(__half2 v) { return float(v.y); }
