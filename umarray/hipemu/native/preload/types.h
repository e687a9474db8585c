// The element types behind CuPy's numbers, and how CuPy orders them: NaN last, complex numbers by real part first.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "../device/hipemu_half_bits.h"

namespace hipemu {

struct Half {
  uint16_t bits;
};

inline float plain(Half v) { return hipemu_half_to_float(v.bits); }
template <class T>
T plain(T v) {
  return v;
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  return false;
}
inline bool is_nan(Half v) { return std::isnan(plain(v)); }
template <class T>
bool is_nan(const std::complex<T>& v) {
  return std::isnan(v.real()) || std::isnan(v.imag());
}

template <class T>
bool less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return false;
    if (std::isnan(b)) return true;
  }
  return a < b;
}
inline bool less(Half a, Half b) { return less(plain(a), plain(b)); }

template <class T>
bool less(const std::complex<T>& a, const std::complex<T>& b) {
  const bool ar = std::isnan(a.real()), ai = std::isnan(a.imag()), br = std::isnan(b.real()), bi = std::isnan(b.imag());
  if (!ar && !ai && !br && !bi) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  }
  if (!ar && !ai) return true;
  if (!br && !bi) return false;
  if (ar != br) return br;
  if (ai != bi) return bi;
  return (ai && bi && a.real() < b.real()) || (ar && br && a.imag() < b.imag());
}

// Calls `f` with a value of the type behind CuPy's number (cupy/type_dispatcher.cuh).
template <class F>
void dispatch(int type, F f) {
  switch (type) {
    case 0:
      return f(int8_t{});
    case 1:
      return f(uint8_t{});
    case 2:
      return f(int16_t{});
    case 3:
      return f(uint16_t{});
    case 4:
      return f(int32_t{});
    case 5:
      return f(uint32_t{});
    case 6:
      return f(int64_t{});
    case 7:
      return f(uint64_t{});
    case 8:
      return f(Half{});
    case 9:
      return f(float{});
    case 10:
      return f(double{});
    case 11:
      return f(std::complex<float>{});
    case 12:
      return f(std::complex<double>{});
    case 13:
      return f(uint8_t{});  // bool
    default:
      throw std::runtime_error("Unsupported dtype ID");
  }
}

}  // namespace hipemu
