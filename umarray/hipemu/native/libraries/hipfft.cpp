// hipFFT: plans of one to three dimensions with strides and batches, all six kinds of transform, unnormalized.
//
// The transforms are computed in double whatever the type. A plan asks for a work area of its data's size, as the real
// library often does, so that a program's caching of work areas is exercised; nothing is kept there.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <vector>

#include "../abi.h"
#include "fourier.h"
#include "work.h"

using namespace hipemu;
using fourier::Complex;

namespace {

enum Status : int { OK = 0, INVALID_PLAN = 1, INVALID_TYPE = 3, INVALID_VALUE = 4, EXEC_FAILED = 6 };
enum Type : int { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69 };

// One side of a transform: how the elements of a batch lie in memory.
struct Layout {
  std::vector<size_t> shape;   // logical
  std::vector<size_t> embed;   // of the storage
  size_t stride = 1, distance = 0;

  size_t offset(size_t linear) const {
    size_t at = 0, scale = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      at += linear % shape[d] * scale;
      linear /= shape[d];
      scale *= embed[d];
    }
    return at * stride;
  }
  size_t count() const {
    size_t n = 1;
    for (const size_t s : shape) n *= s;
    return n;
  }
};

struct Plan {
  void* stream = nullptr;
  bool made = false;
  int type = 0;
  std::vector<size_t> shape;
  size_t batch = 1;
  Layout in, out;
  bool basic = false;  // no strides given: a real transform in place pads its rows
};

Layout basic(const std::vector<size_t>& shape) {
  Layout layout;
  layout.shape = layout.embed = shape;
  layout.distance = layout.count();
  return layout;
}

int make(Plan* plan, int rank, const int* n, const int* in_embed, int in_stride, int in_distance, const int* out_embed,
         int out_stride, int out_distance, int type, int batch, size_t* work) {
  if (!plan) return INVALID_PLAN;
  if (rank < 1 || rank > 3 || !n || batch < 1) return INVALID_VALUE;
  if (type != R2C && type != C2R && type != C2C && type != D2Z && type != Z2D && type != Z2Z) return INVALID_TYPE;
  plan->type = type;
  plan->batch = static_cast<size_t>(batch);
  plan->shape.assign(n, n + rank);
  for (const size_t s : plan->shape) {
    if (s == 0) return INVALID_VALUE;
  }
  std::vector<size_t> half = plan->shape;
  half.back() = half.back() / 2 + 1;
  plan->in = basic(type == C2R || type == Z2D ? half : plan->shape);
  plan->out = basic(type == R2C || type == D2Z ? half : plan->shape);
  plan->basic = !in_embed || !out_embed;
  if (!plan->basic) {
    plan->in.embed.assign(in_embed, in_embed + rank);
    plan->out.embed.assign(out_embed, out_embed + rank);
    plan->in.stride = static_cast<size_t>(in_stride);
    plan->in.distance = static_cast<size_t>(in_distance);
    plan->out.stride = static_cast<size_t>(out_stride);
    plan->out.distance = static_cast<size_t>(out_distance);
  }
  const size_t each = type >= Z2Z ? 16 : 8;
  if (work) *work = plan->batch * plan->out.count() * each;
  plan->made = true;
  return OK;
}

// All axes but the last of an array whose last axis has `last` elements.
void outer_axes(Complex* data, const std::vector<size_t>& shape, int sign) {
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) fourier::along(data, shape, axis, shape[axis], sign);
}

template <class In, class Out>
void run(const Plan& plan, const In* in, Out* out, int sign) {
  constexpr bool from_real = std::is_floating_point_v<In>, to_real = std::is_floating_point_v<Out>;
  const size_t last = plan.shape.back();
  std::vector<Complex> data;
  for (size_t b = 0; b < plan.batch; ++b) {
    const In* source = in + b * plan.in.distance;
    data.resize(plan.in.count());
    for (size_t i = 0; i < data.size(); ++i) data[i] = Complex(source[plan.in.offset(i)]);
    if constexpr (from_real) {
      fourier::along(data.data(), plan.in.shape, plan.in.shape.size() - 1, last, -1);
      const size_t kept = last / 2 + 1, rows = data.size() / last;
      for (size_t r = 0; r < rows; ++r) std::copy_n(data.data() + r * last, kept, data.data() + r * kept);
      data.resize(rows * kept);
      outer_axes(data.data(), plan.out.shape, -1);
    } else if constexpr (to_real) {
      outer_axes(data.data(), plan.in.shape, 1);
      const size_t kept = last / 2 + 1, rows = data.size() / kept;
      std::vector<Complex> full(rows * last);
      for (size_t r = 0; r < rows; ++r) {
        Complex* row = full.data() + r * last;
        for (size_t k = 0; k < kept && k < last; ++k) row[k] = data[r * kept + k];
        for (size_t k = kept; k < last; ++k) row[k] = std::conj(row[last - k]);
        row[0] = row[0].real();
        if (last % 2 == 0) row[last / 2] = row[last / 2].real();
      }
      data.swap(full);
      fourier::along(data.data(), plan.out.shape, plan.out.shape.size() - 1, last, 1);
    } else {
      outer_axes(data.data(), plan.shape, sign);
      fourier::along(data.data(), plan.shape, plan.shape.size() - 1, last, sign);
    }
    Out* target = out + b * plan.out.distance;
    for (size_t i = 0; i < data.size(); ++i) {
      if constexpr (to_real) {
        target[plan.out.offset(i)] = static_cast<Out>(data[i].real());
      } else {
        target[plan.out.offset(i)] = static_cast<Out>(data[i]);
      }
    }
  }
}

template <class In, class Out>
int execute(void* handle, int type, In* in, Out* out, int sign) {
  auto* plan = static_cast<Plan*>(handle);
  if (!plan || !plan->made || plan->type != type) return INVALID_PLAN;
  if (sign != -1 && sign != 1) return INVALID_VALUE;
  Plan copy = *plan;
  if (copy.basic && static_cast<void*>(in) == static_cast<void*>(out) && !std::is_same_v<In, Out>) {
    Layout& real = std::is_floating_point_v<In> ? copy.in : copy.out;
    real.embed.back() = 2 * (copy.shape.back() / 2 + 1);
    real.distance = real.count() / copy.shape.back() * real.embed.back();
  }
  in = shift(in, plan->stream), out = shift(out, plan->stream);
  return enqueue(plan->stream, "hipfft", [=] { run(copy, in, out, sign); }) ? EXEC_FAILED : OK;
}

}  // namespace

HIPEMU_EXPORT int hipfftCreate(void** handle) {
  *handle = new Plan;
  return OK;
}
HIPEMU_EXPORT int hipfftDestroy(void* handle) {
  delete static_cast<Plan*>(handle);
  return OK;
}
HIPEMU_EXPORT int hipfftSetStream(void* handle, void* stream) {
  if (!handle) return INVALID_PLAN;
  static_cast<Plan*>(handle)->stream = stream;
  return OK;
}
HIPEMU_EXPORT int hipfftSetAutoAllocation(void* handle, int) { return handle ? OK : INVALID_PLAN; }
HIPEMU_EXPORT int hipfftSetWorkArea(void* handle, void*) { return handle ? OK : INVALID_PLAN; }
HIPEMU_EXPORT int hipfftMakePlan1d(void* handle, int n, int type, int batch, size_t* work) {
  return make(static_cast<Plan*>(handle), 1, &n, nullptr, 1, 0, nullptr, 1, 0, type, batch, work);
}
HIPEMU_EXPORT int hipfftMakePlanMany(void* handle, int rank, int* n, int* in_embed, int in_stride, int in_distance,
                                     int* out_embed, int out_stride, int out_distance, int type, int batch,
                                     size_t* work) {
  return make(static_cast<Plan*>(handle), rank, n, in_embed, in_stride, in_distance, out_embed, out_stride,
              out_distance, type, batch, work);
}
HIPEMU_EXPORT int hipfftExecC2C(void* h, std::complex<float>* in, std::complex<float>* out, int sign) {
  return execute(h, C2C, in, out, sign);
}
HIPEMU_EXPORT int hipfftExecZ2Z(void* h, std::complex<double>* in, std::complex<double>* out, int sign) {
  return execute(h, Z2Z, in, out, sign);
}
HIPEMU_EXPORT int hipfftExecR2C(void* h, float* in, std::complex<float>* out) { return execute(h, R2C, in, out, -1); }
HIPEMU_EXPORT int hipfftExecD2Z(void* h, double* in, std::complex<double>* out) { return execute(h, D2Z, in, out, -1); }
HIPEMU_EXPORT int hipfftExecC2R(void* h, std::complex<float>* in, float* out) { return execute(h, C2R, in, out, 1); }
HIPEMU_EXPORT int hipfftExecZ2D(void* h, std::complex<double>* in, double* out) { return execute(h, Z2D, in, out, 1); }
