// float16 as bits: conversions in integers, rounding to nearest even. Used by kernels and by the emulated libraries.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

inline float hipemu_half_to_float(unsigned short h) {
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 31, mantissa = h & 0x3ffu;
  uint32_t bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000u | mantissa << 13;
  } else if (exponent) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else {
    const float tiny = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
    return sign ? -tiny : tiny;
  }
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

inline unsigned short hipemu_float_to_half(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  const unsigned short sign = static_cast<unsigned short>(bits >> 16 & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return sign | 0x7e00u;
  if (bits >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (bits < 0x33000001u) return sign;             // at most half of the smallest subnormal
  if (bits < 0x38800000u) {                        // subnormal result
    const uint32_t shift = 126 - (bits >> 23);     // 14 to 24
    const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    const uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    return static_cast<unsigned short>(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
  }
  const uint32_t shifted = bits - 0x38000000u;
  return static_cast<unsigned short>(sign | ((shifted + 0xfffu + (shifted >> 13 & 1)) >> 13));
}

// From double in one rounding: a float rounded to odd keeps what the second rounding must know.
inline unsigned short hipemu_double_to_half(double d) {
  float f = static_cast<float>(d);
  if (static_cast<double>(f) != d && d == d && std::fabs(d) < 1e30) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if (std::fabs(static_cast<double>(f)) > std::fabs(d)) --bits;
    bits |= 1;
    std::memcpy(&f, &bits, 4);
  }
  return hipemu_float_to_half(f);
}
