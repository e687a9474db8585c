// What the parts of hipBLAS share: the handle, its scalars, how a call answers.
#pragma once

#include <complex>
#include <cstdio>

#include "../abi.h"
#include "work.h"

namespace hipemu::hipblas {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

enum Status : int { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, EXECUTION_FAILED = 6, NOT_SUPPORTED = 7 };

constexpr int COLUMN_MAJOR = 102;

struct Handle {
  void* stream = nullptr;
  int pointer_mode = 0;  // 0 host, 1 device
};

inline void* stream_of(void* handle) { return static_cast<Handle*>(handle)->stream; }

inline Status refuse(const char* what) {
  std::fprintf(stderr, "hipemu: %s is not emulated\n", what);
  return NOT_SUPPORTED;
}

inline Status status(int code) { return code ? EXECUTION_FAILED : OK; }

// A scalar argument, as the pointer mode says: on the host, known now; on the device, to be read on the stream.
template <class V>
struct Scalar {
  V value{};
  const V* later = nullptr;
  V get() const { return later ? *later : value; }
};

template <class V>
Scalar<V> scalar(const Handle& h, const V* p) {
  Scalar<V> s;
  if (h.pointer_mode) {
    s.later = shift(p, h.stream);
  } else {
    s.value = *p;
  }
  return s;
}

}  // namespace hipemu::hipblas
