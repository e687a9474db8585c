// hipRAND's host generators: what cupy.random's legacy functions use.
//
// The numbers are of good quality (std::mt19937_64) and repeat for a seed, but are not those of a real card's
// generators. A generator's calls run in the order of its stream and share one state.
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>

#include "../abi.h"
#include "work.h"

using namespace hipemu;

namespace {

enum Status : int { OK = 0, NOT_INITIALIZED = 101, FAILURE = 201 };

struct State {
  std::mutex mutex;
  uint64_t seed = 0, offset = 0;
  std::mt19937_64 engine;
  void restart() {
    engine.seed(seed);
    engine.discard(offset);
  }
};

struct Generator {
  void* stream = nullptr;
  std::shared_ptr<State> state = std::make_shared<State>();
};

// Uniform in (0, 1], as hipRAND's.
double uniform(std::mt19937_64& engine) { return static_cast<double>((engine() >> 11) + 1) * 0x1p-53; }
float uniform_float(std::mt19937_64& engine) { return static_cast<float>((engine() >> 40) + 1) * 0x1p-24f; }

template <class T, class F>
int fill(void* handle, T* out, size_t n, F next) {
  if (!handle) return NOT_INITIALIZED;
  const auto& g = *static_cast<Generator*>(handle);
  T* to = shift(out, g.stream);
  const auto state = g.state;
  const int bad = enqueue(g.stream, "hiprand", [=]() mutable {
    const std::lock_guard<std::mutex> held(state->mutex);
    for (size_t i = 0; i < n; ++i) to[i] = next(state->engine);
  });
  return bad ? FAILURE : OK;
}

}  // namespace

HIPEMU_EXPORT int hiprandCreateGenerator(void** handle, int) {
  auto* g = new Generator;
  g->state->restart();
  *handle = g;
  return OK;
}
HIPEMU_EXPORT int hiprandDestroyGenerator(void* handle) {
  delete static_cast<Generator*>(handle);
  return OK;
}
HIPEMU_EXPORT int hiprandSetStream(void* handle, void* stream) {
  if (!handle) return NOT_INITIALIZED;
  static_cast<Generator*>(handle)->stream = stream;
  return OK;
}
namespace {
int restart(void* handle, bool seed, uint64_t value) {
  if (!handle) return NOT_INITIALIZED;
  const auto& g = *static_cast<Generator*>(handle);
  const auto state = g.state;
  const int bad = enqueue(g.stream, "hiprand", [=] {
    const std::lock_guard<std::mutex> held(state->mutex);
    (seed ? state->seed : state->offset) = value;
    state->restart();
  });
  return bad ? FAILURE : OK;
}
}  // namespace
HIPEMU_EXPORT int hiprandSetPseudoRandomGeneratorSeed(void* handle, unsigned long long seed) {
  return restart(handle, true, seed);
}
HIPEMU_EXPORT int hiprandSetGeneratorOffset(void* handle, unsigned long long offset) {
  return restart(handle, false, offset);
}
HIPEMU_EXPORT int hiprandGenerate(void* handle, unsigned* out, size_t n) {
  return fill(handle, out, n, [](auto& e) { return static_cast<unsigned>(e() >> 32); });
}
HIPEMU_EXPORT int hiprandGenerateUniform(void* handle, float* out, size_t n) {
  return fill(handle, out, n, [](auto& e) { return uniform_float(e); });
}
HIPEMU_EXPORT int hiprandGenerateUniformDouble(void* handle, double* out, size_t n) {
  return fill(handle, out, n, [](auto& e) { return uniform(e); });
}
HIPEMU_EXPORT int hiprandGenerateNormal(void* handle, float* out, size_t n, float mean, float deviation) {
  return fill(handle, out, n, [d = std::normal_distribution<double>(mean, deviation)](auto& e) mutable {
    return static_cast<float>(d(e));
  });
}
HIPEMU_EXPORT int hiprandGenerateNormalDouble(void* handle, double* out, size_t n, double mean, double deviation) {
  return fill(handle, out, n, std::normal_distribution<double>(mean, deviation));
}
HIPEMU_EXPORT int hiprandGenerateLogNormal(void* handle, float* out, size_t n, float mean, float deviation) {
  return fill(handle, out, n, [d = std::lognormal_distribution<double>(mean, deviation)](auto& e) mutable {
    return static_cast<float>(d(e));
  });
}
HIPEMU_EXPORT int hiprandGenerateLogNormalDouble(void* handle, double* out, size_t n, double mean, double deviation) {
  return fill(handle, out, n, std::lognormal_distribution<double>(mean, deviation));
}
HIPEMU_EXPORT int hiprandGeneratePoisson(void* handle, unsigned* out, size_t n, double mean) {
  return fill(handle, out, n, std::poisson_distribution<unsigned>(mean));
}
