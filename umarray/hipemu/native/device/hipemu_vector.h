// Vector types (float4 and the like), their makers and arithmetic. Generated shape, written once: change it by hand.
#pragma once

template <class T, int N>
struct hipemu_vector;

template <class T>
struct hipemu_vector<T, 1> {
  T x;
  static constexpr int size = 1;
};
template <class T>
struct alignas(2 * sizeof(T)) hipemu_vector<T, 2> {
  T x, y;
  static constexpr int size = 2;
};
template <class T>
struct hipemu_vector<T, 3> {
  T x, y, z;
  static constexpr int size = 3;
};
template <class T>
struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) hipemu_vector<T, 4> {
  T x, y, z, w;
  static constexpr int size = 4;
};

#define HIPEMU_VECTORS(T, name)                                                           \
  using name##1 = hipemu_vector<T, 1>;                                                    \
  using name##2 = hipemu_vector<T, 2>;                                                    \
  using name##3 = hipemu_vector<T, 3>;                                                    \
  using name##4 = hipemu_vector<T, 4>;                                                    \
  inline name##1 make_##name##1(T x) { return {x}; }                                      \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                              \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                      \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

HIPEMU_VECTORS(char, char)
HIPEMU_VECTORS(unsigned char, uchar)
HIPEMU_VECTORS(short, short)
HIPEMU_VECTORS(unsigned short, ushort)
HIPEMU_VECTORS(int, int)
HIPEMU_VECTORS(unsigned int, uint)
HIPEMU_VECTORS(long, long)
HIPEMU_VECTORS(unsigned long, ulong)
HIPEMU_VECTORS(long long, longlong)
HIPEMU_VECTORS(unsigned long long, ulonglong)
HIPEMU_VECTORS(float, float)
HIPEMU_VECTORS(double, double)

#undef HIPEMU_VECTORS

#define HIPEMU_OPERATOR(op)                                                                              \
  template <class T, int N>                                                                              \
  inline hipemu_vector<T, N> operator op(hipemu_vector<T, N> a, const hipemu_vector<T, N>& b) {          \
    a.x = a.x op b.x;                                                                                    \
    if constexpr (N > 1) a.y = a.y op b.y;                                                               \
    if constexpr (N > 2) a.z = a.z op b.z;                                                               \
    if constexpr (N > 3) a.w = a.w op b.w;                                                               \
    return a;                                                                                            \
  }                                                                                                      \
  template <class T, int N>                                                                              \
  inline hipemu_vector<T, N>& operator op##=(hipemu_vector<T, N>& a, const hipemu_vector<T, N>& b) {     \
    return a = a op b;                                                                                   \
  }

HIPEMU_OPERATOR(+)
HIPEMU_OPERATOR(-)
HIPEMU_OPERATOR(*)
HIPEMU_OPERATOR(/)

#undef HIPEMU_OPERATOR

template <class T, int N>
inline bool operator==(const hipemu_vector<T, N>& a, const hipemu_vector<T, N>& b) {
  bool same = a.x == b.x;
  if constexpr (N > 1) same = same && a.y == b.y;
  if constexpr (N > 2) same = same && a.z == b.z;
  if constexpr (N > 3) same = same && a.w == b.w;
  return same;
}
template <class T, int N>
inline bool operator!=(const hipemu_vector<T, N>& a, const hipemu_vector<T, N>& b) {
  return !(a == b);
}
