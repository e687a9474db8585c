// Mathematical functions that HIP has and <cmath> has not, min and max over mixed types, fast-math intrinsics.
//
// The fast intrinsics are the exact functions here: results are nearer to the true value than a device's, never
// further away.
#pragma once

using std::abs;

template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
inline constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? T(b) : T(b) > T(a) ? T(b) : T(a);  // like fmax: a number wins over NaN
  } else {
    return T(a) < T(b) ? T(b) : T(a);
  }
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
inline constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? T(b) : T(b) < T(a) ? T(b) : T(a);
  } else {
    return T(b) < T(a) ? T(b) : T(a);
  }
}

inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
inline double sinpi(double x) { return std::sin(M_PI * std::fmod(x, 2.0)); }
inline double cospi(double x) { return std::cos(M_PI * std::fmod(x, 2.0)); }
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline float exp10(float x) { return ::exp10f(x); }
inline double norm3d(double a, double b, double c) { return std::hypot(a, b, c); }
inline float norm3df(float a, float b, float c) { return std::hypot(a, b, c); }

// Inverse error function: Giles' approximation as a start, then two Newton steps in double.
inline double erfinv(double x) {
  if (!(x > -1.0 && x < 1.0)) {
    return x == 1.0 ? HUGE_VAL : x == -1.0 ? -HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  if (x == 0.0) return x;
  const double w = -std::log((1.0 - x) * (1.0 + x));
  double p;
  if (w < 5.0) {
    const double v = w - 2.5;
    p = 2.81022636e-08;
    for (const double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                           -0.00417768164, 0.246640727, 1.50140941}) {
      p = c + p * v;
    }
  } else {
    const double v = std::sqrt(w) - 3.0;
    p = -0.000200214257;
    for (const double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
                           1.00167406, 2.83297682}) {
      p = c + p * v;
    }
  }
  double y = p * x;
  const double scale = 2.0 / std::sqrt(M_PI);
  for (int i = 0; i < 3; ++i) {
    // Near the ends the complement keeps the digits.
    const double error = std::fabs(x) > 0.5 ? (y > 0 ? (1.0 - x) - std::erfc(y) : std::erfc(-y) - (1.0 + x))
                                            : std::erf(y) - x;
    const double slope = scale * std::exp(-y * y);
    if (slope == 0.0) break;
    const double step = error / slope;
    y -= step / (1.0 + y * step);
  }
  return y;
}
inline double erfcinv(double x) {
  if (!(x > 0.0 && x < 2.0)) {
    return x == 0.0 ? HUGE_VAL : x == 2.0 ? -HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  if (x > 0.1 && x < 1.9) return erfinv(1.0 - x);
  const bool low = x < 1.0;
  const double q = low ? x : 2.0 - x;  // erfc(y) = q with y > 0
  double y = std::sqrt(-std::log(q * std::sqrt(M_PI) * std::sqrt(-std::log(q))));
  const double scale = 2.0 / std::sqrt(M_PI);
  for (int i = 0; i < 8; ++i) {
    const double slope = scale * std::exp(-y * y);
    if (slope == 0.0) break;
    const double step = (std::erfc(y) - q) / slope;
    y += step / (1.0 - y * step);
  }
  return low ? y : -y;
}
inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
inline double normcdfinv(double x) { return -M_SQRT2 * erfcinv(2.0 * x); }
inline double erfcx(double x) {
  if (x < 25.0) return std::exp(x * x) * std::erfc(x);
  const double y = 1.0 / (2.0 * x * x);
  return (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y))) / (x * std::sqrt(M_PI));
}

// Modified Bessel functions: by their power series, whose terms are all positive, and from 30 on by Hankel's expansion
// (Abramowitz and Stegun 9.6.10, 9.7.1).
inline double hipemu_bessel_i(int order, double x) {
  if (!(x > 30)) {
    double term = order ? x / 2 : 1, sum = term;
    for (int k = 1; term > sum * 1e-17; ++k) sum += term *= x * x / 4 / k / (k + order);
    return x != x ? x : sum;
  }
  if (x > 1000) return HUGE_VAL;
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2 * k - 1, factor = (odd * odd - 4 * order * order) / (8 * x * k);
    if (std::fabs(factor) >= 1 || std::fabs(term) < 1e-17) break;
    sum += term *= factor;
  }
  const double half = std::exp(x / 2);  // so that it becomes infinite where the function does
  return half * (sum / std::sqrt(2 * M_PI * x)) * half;
}
inline double cyl_bessel_i0(double x) { return hipemu_bessel_i(0, std::fabs(x)); }
inline double cyl_bessel_i1(double x) { return std::copysign(hipemu_bessel_i(1, std::fabs(x)), x); }

#define HIPEMU_FLOAT_OF(name)                                                 \
  inline float name(float x) { return static_cast<float>(name(double(x))); } \
  inline float name##f(float x) { return static_cast<float>(name(double(x))); }
HIPEMU_FLOAT_OF(erfinv)
HIPEMU_FLOAT_OF(erfcinv)
HIPEMU_FLOAT_OF(normcdf)
HIPEMU_FLOAT_OF(normcdfinv)
HIPEMU_FLOAT_OF(erfcx)
HIPEMU_FLOAT_OF(cyl_bessel_i0)
HIPEMU_FLOAT_OF(cyl_bessel_i1)
#undef HIPEMU_FLOAT_OF

inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return ::exp10f(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline void __sincosf(float x, float* s, float* c) { *s = std::sin(x), *c = std::cos(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return 1.0f / std::sqrt(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(std::nearbyint(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline int __double2int_rn(double x) { return static_cast<int>(std::nearbyint(x)); }
inline int __double2int_rz(double x) { return static_cast<int>(x); }
inline double __int2double_rn(int x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline long long __double2ll_rn(double x) { return static_cast<long long>(std::nearbyint(x)); }
