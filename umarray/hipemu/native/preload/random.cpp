// The wheel's Generator API (cupy.random.default_rng), in place of its precompiled kernels.
//
// Each of CuPy's states holds a xoshiro256++ generator in its first 32 bytes, and element i of a result is drawn from
// state i modulo their number, as CuPy does. The numbers repeat for a seed, but are not those of a real card.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>

#include "runtime.h"

namespace {

struct State {
  using result_type = uint64_t;
  uint64_t s[4];

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  static uint64_t turn(uint64_t x, int k) { return x << k | x >> (64 - k); }

  uint64_t operator()() {
    const uint64_t result = turn(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = turn(s[3], 45);
    return result;
  }
  void seed(uint64_t seed, uint64_t number) {
    uint64_t x = seed * 0x9e3779b97f4a7c15u ^ (number + 1) * 0xd1342543de82ef95u;
    for (uint64_t& word : s) {  // splitmix64
      x += 0x9e3779b97f4a7c15u;
      uint64_t z = x;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
      z = (z ^ z >> 27) * 0x94d049bb133111ebu;
      word = z ^ z >> 31;
    }
  }
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }  // [0, 1)
};

// A parameter that may differ by element: CuPy's description of a strided array, in device memory.
template <class T>
struct Parameter {
  const int64_t* data;  // address, dimensions, shape, strides
  explicit Parameter(intptr_t address) : data(hipemu::shift_here(reinterpret_cast<const int64_t*>(address))) {}
  T operator()(int64_t id) const {
    const auto* base = hipemu::shift_here(reinterpret_cast<const char*>(data[0]));
    const int64_t dimensions = data[1];
    for (int64_t d = dimensions; --d >= 0;) {
      base += data[dimensions + d + 2] * (id % data[d + 2]);
      id /= data[d + 2];
    }
    return *reinterpret_cast<const T*>(base);
  }
};

// Fills `out`; `draw(state, i)` makes element i. `prepare` runs on the worker and returns `draw`.
template <class R, class F>
void fill(const char* name, intptr_t states, ssize_t count, intptr_t out, ssize_t size, intptr_t stream, F prepare) {
  hipemu::enqueue(stream, name, [=] {
    State* state = hipemu::shift_here(reinterpret_cast<State*>(states));
    R* to = hipemu::shift_here(reinterpret_cast<R*>(out));
    auto draw = prepare();
    for (ssize_t i = 0; i < size; ++i) to[i] = static_cast<R>(draw(state[i % count], i));
  });
}

double gamma(State& s, double shape) { return shape > 0 ? std::gamma_distribution<double>(shape)(s) : 0.0; }

int64_t logseries(State& s, double p) {
  const double r = std::log1p(-p);
  for (;;) {
    const double v = s.uniform();
    if (v >= p) return 1;
    const double q = -std::expm1(r * s.uniform());
    if (v <= q * q) {
      const auto result = static_cast<int64_t>(std::floor(1 + std::log(v) / std::log(q)));
      if (result >= 1) return result;
    } else {
      return v >= q ? 1 : 2;
    }
  }
}

int64_t hypergeometric(State& s, int64_t good, int64_t bad, int64_t sample) {
  int64_t drawn = 0;
  for (int64_t i = 0; i < sample && good > 0; ++i) {
    if (s.uniform() * static_cast<double>(good + bad) < static_cast<double>(good)) {
      ++drawn;
      --good;
    } else {
      --bad;
    }
  }
  return drawn;
}

}  // namespace

#define EXPORT __attribute__((visibility("default")))
#define COMMON int, intptr_t state, ssize_t count, intptr_t out, ssize_t size, intptr_t stream
#define FILL(R, name, ...) fill<R>(name, state, count, out, size, stream, [=] { __VA_ARGS__; })

EXPORT void init_curand_generator(int, intptr_t states, uint64_t seed, ssize_t size, intptr_t stream) {
  hipemu::enqueue(stream, "init_curand_generator", [=] {
    State* state = hipemu::shift_here(reinterpret_cast<State*>(states));
    for (ssize_t i = 0; i < size; ++i) state[i].seed(seed, static_cast<uint64_t>(i));
  });
}

EXPORT void raw(COMMON) {
  FILL(int32_t, "raw", return [](State& s, int64_t) { return s() >> 32; });
}
EXPORT void random_uniform(COMMON) {
  FILL(double, "random_uniform", return [](State& s, int64_t) { return s.uniform(); });
}
EXPORT void random_uniform_float(COMMON) {
  FILL(float, "random_uniform_float",
       return [](State& s, int64_t) { return static_cast<float>(s() >> 40) * 0x1p-24f; });
}
// The bounds are signed in CuPy 13 and unsigned in 14, which their mangled names tell.
using Bound32 = std::conditional_t<hipemu::rocm::MAJOR == 5, int32_t, uint32_t>;
using Bound64 = std::conditional_t<hipemu::rocm::MAJOR == 5, int64_t, uint64_t>;

EXPORT void interval_32(COMMON, Bound32 most, Bound32 mask) {
  const auto m = static_cast<uint32_t>(most), bits = static_cast<uint32_t>(mask);
  FILL(int32_t, "interval_32", return [=](State& s, int64_t) {
    uint32_t v;
    do v = static_cast<uint32_t>(s() >> 32) & bits;
    while (v > m);
    return v;
  });
}
EXPORT void interval_64(COMMON, Bound64 most, Bound64 mask) {
  const auto m = static_cast<uint64_t>(most), bits = static_cast<uint64_t>(mask);
  FILL(int64_t, "interval_64", return [=](State& s, int64_t) {
    uint64_t v;
    do v = s() & bits;
    while (v > m);
    return v;
  });
}
EXPORT void exponential(COMMON) {
  FILL(double, "exponential", return [](State& s, int64_t) { return -std::log1p(-s.uniform()); });
}
EXPORT void standard_normal(COMMON) {
  FILL(double, "standard_normal", return [](State& s, int64_t) { return std::normal_distribution<double>()(s); });
}
EXPORT void standard_normal_float(COMMON) {
  FILL(float, "standard_normal_float", return [](State& s, int64_t) { return std::normal_distribution<float>()(s); });
}
EXPORT void standard_gamma(COMMON, intptr_t shape) {
  FILL(double, "standard_gamma", return [p = Parameter<double>(shape)](State& s, int64_t i) { return gamma(s, p(i)); });
}
EXPORT void beta(COMMON, intptr_t a, intptr_t b) {
  FILL(double, "beta", return [p = Parameter<double>(a), q = Parameter<double>(b)](State& s, int64_t i) {
    const double x = gamma(s, p(i)), y = gamma(s, q(i));
    return x / (x + y);
  });
}
EXPORT void poisson(COMMON, intptr_t mean) {
  FILL(int64_t, "poisson", return [p = Parameter<double>(mean)](State& s, int64_t i) {
    return p(i) > 0 ? std::poisson_distribution<int64_t>(p(i))(s) : 0;
  });
}
EXPORT void geometric(COMMON, intptr_t chance) {
  FILL(int64_t, "geometric", return [p = Parameter<double>(chance)](State& s, int64_t i) {
    return p(i) < 1 ? 1 + std::geometric_distribution<int64_t>(p(i))(s) : 1;
  });
}
EXPORT void logseries(COMMON, intptr_t chance) {
  FILL(int64_t, "logseries",
       return [p = Parameter<double>(chance)](State& s, int64_t i) { return logseries(s, p(i)); });
}
EXPORT void hypergeometric(COMMON, intptr_t good, intptr_t bad, intptr_t sample) {
  FILL(int64_t, "hypergeometric",
       return [g = Parameter<int64_t>(good), b = Parameter<int64_t>(bad), n = Parameter<int64_t>(sample)](
                  State& s, int64_t i) { return hypergeometric(s, g(i), b(i), n(i)); });
}
EXPORT void binomial(COMMON, intptr_t n, intptr_t chance, intptr_t) {
  FILL(int64_t, "binomial", return [m = Parameter<int>(n), p = Parameter<double>(chance)](State& s, int64_t i) {
    return std::binomial_distribution<int64_t>(m(i), p(i))(s);
  });
}
