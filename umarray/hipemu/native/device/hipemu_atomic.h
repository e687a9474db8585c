// Atomics on real memory, since streams run in real threads: sequentially consistent, any type of 4 or 8 bytes.
#pragma once

template <class T, class F>
inline T hipemu_atomic_update(T* address, F next) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "no atomic of this size");
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  auto* where = reinterpret_cast<Bits*>(address);
  Bits seen = __atomic_load_n(where, __ATOMIC_SEQ_CST);
  for (;;) {
    T old, made;
    std::memcpy(&old, &seen, sizeof old);
    made = next(old);
    Bits wanted;
    std::memcpy(&wanted, &made, sizeof wanted);
    if (__atomic_compare_exchange_n(where, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
  }
}

template <class T>
struct hipemu_same {
  using type = T;
};
#define HIPEMU_SAME(T) typename hipemu_same<T>::type

#define HIPEMU_ATOMIC(name, expression)                                            \
  template <class T>                                                               \
  inline T name(T* address, HIPEMU_SAME(T) value) {                                \
    return hipemu_atomic_update(address, [value](T old) -> T { return expression; }); \
  }                                                                                \
  template <class T>                                                               \
  inline T name##_system(T* address, HIPEMU_SAME(T) value) {                       \
    return name(address, value);                                                   \
  }

HIPEMU_ATOMIC(atomicAdd, old + value)
HIPEMU_ATOMIC(atomicSub, old - value)
HIPEMU_ATOMIC(atomicExch, value)
HIPEMU_ATOMIC(atomicMin, (old < value ? old : value))
HIPEMU_ATOMIC(atomicMax, (old > value ? old : value))
HIPEMU_ATOMIC(atomicAnd, old & value)
HIPEMU_ATOMIC(atomicOr, old | value)
HIPEMU_ATOMIC(atomicXor, old ^ value)
HIPEMU_ATOMIC(atomicInc, (old >= value ? T(0) : T(old + 1)))
HIPEMU_ATOMIC(atomicDec, ((old == T(0) || old > value) ? value : T(old - 1)))
HIPEMU_ATOMIC(unsafeAtomicAdd, old + value)

#undef HIPEMU_ATOMIC

template <class T>
inline T atomicCAS(T* address, HIPEMU_SAME(T) compare, HIPEMU_SAME(T) value) {
  return hipemu_atomic_update(address, [=](T old) -> T {
    return std::memcmp(&old, &compare, sizeof old) == 0 ? value : old;
  });
}
template <class T>
inline T atomicCAS_system(T* address, HIPEMU_SAME(T) compare, HIPEMU_SAME(T) value) {
  return atomicCAS(address, compare, value);
}
