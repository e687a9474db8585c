// What hipblas*Ex call their types: numbers of ROCm 5's hipblasDatatype_t, and since ROCm 6 those of hipDataType and, for
// the computation, of hipblasComputeType_t, which does not tell complex numbers from real ones.
#pragma once

#include "../rocm.h"

namespace hipemu::blas {

enum class Type { other, r16, r32, r64, c32, c64 };

inline bool complex_numbers(Type type) { return type == Type::c32 || type == Type::c64; }

inline Type data_type(int number) {
  switch (number) {
    case rocm::MAJOR == 5 ? 150 : 2: return Type::r16;
    case rocm::MAJOR == 5 ? 151 : 0: return Type::r32;
    case rocm::MAJOR == 5 ? 152 : 1: return Type::r64;
    case rocm::MAJOR == 5 ? 154 : 4: return Type::c32;
    case rocm::MAJOR == 5 ? 155 : 5: return Type::c64;
    default: return Type::other;
  }
}

// The type to compute in, for operands of type `data`.
inline Type compute_type(int number, Type data) {
  if (rocm::MAJOR == 5) return data_type(number);
  switch (number) {
    case 0: case 1: return Type::r16;                                   // HIPBLAS_COMPUTE_16F, pedantic or not
    case 2: case 3: return complex_numbers(data) ? Type::c32 : Type::r32;  // 32F
    case 7: case 8: return complex_numbers(data) ? Type::c64 : Type::r64;  // 64F
    default: return Type::other;
  }
}

}  // namespace hipemu::blas
