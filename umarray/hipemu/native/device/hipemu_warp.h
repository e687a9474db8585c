// Barriers, fences, shuffles and votes. A wavefront has 64 lanes.
//
// On the device the lanes of a wavefront march in step, and code relies on it with no more than a fence between them
// (CuPy's __syncwarp is a block fence on HIP). So a block fence is a barrier of the warp here.
//
// The lanes that take part in a shuffle or vote: when every live lane of the warp waits at something, those that wait
// at the earliest line of the source. So the inside of a branch runs before what follows it, with its own lanes active,
// as on a diverged wavefront. Not told apart: two operations on one line, and a function called both inside and after
// a branch. A shuffle from a lane that takes no part gives what that lane left last, as undefined as on the device.
#pragma once

inline void __syncthreads() { hipemu_barrier(); }
inline int __syncthreads_count(int p) { return hipemu_barrier_reduce(0, p); }
inline int __syncthreads_and(int p) { return hipemu_barrier_reduce(1, p); }
inline int __syncthreads_or(int p) { return hipemu_barrier_reduce(2, p); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block(int site = __builtin_LINE()) { hipemu_warp_leave(nullptr, 0, site); }

inline unsigned __lane_id() { return hipemu_current->linear & 63u; }
inline unsigned hipemu_lane() { return hipemu_current->linear & 63u; }

template <class T>
inline T hipemu_exchange(T value, unsigned lane, int site) {
  static_assert(sizeof(T) <= 16, "a shuffle of this size is not emulated");
  hipemu_warp_leave(&value, sizeof value, site);
  std::memcpy(&value, hipemu_warp_value(lane & 63u), sizeof value);
  return value;
}

template <class T>
inline T __shfl(T value, int source, int width = 64, int site = __builtin_LINE()) {
  const unsigned lane = hipemu_lane();
  const unsigned first = lane & ~(unsigned(width) - 1);
  return hipemu_exchange(value, first + (unsigned(source) & (unsigned(width) - 1)), site);
}
template <class T>
inline T __shfl_up(T value, unsigned delta, int width = 64, int site = __builtin_LINE()) {
  const unsigned lane = hipemu_lane();
  const unsigned within = lane & (unsigned(width) - 1);
  return hipemu_exchange(value, within >= delta ? lane - delta : lane, site);
}
template <class T>
inline T __shfl_down(T value, unsigned delta, int width = 64, int site = __builtin_LINE()) {
  const unsigned lane = hipemu_lane();
  const unsigned within = lane & (unsigned(width) - 1);
  return hipemu_exchange(value, within + delta < unsigned(width) ? lane + delta : lane, site);
}
template <class T>
inline T __shfl_xor(T value, int mask, int width = 64, int site = __builtin_LINE()) {
  const unsigned lane = hipemu_lane();
  const unsigned other = lane ^ unsigned(mask);
  const unsigned end = (lane & ~(unsigned(width) - 1)) + unsigned(width);
  return hipemu_exchange(value, other < end ? other : lane, site);
}

inline uint64_t __ballot(int predicate, int site = __builtin_LINE()) {
  const int mine = predicate != 0;
  hipemu_warp_leave(&mine, sizeof mine, site);
  uint64_t votes = 0;
  const uint64_t active = hipemu_warp_active();
  for (unsigned lane = 0; lane < 64; ++lane) {
    int theirs;
    std::memcpy(&theirs, hipemu_warp_value(lane), sizeof theirs);
    if ((active >> lane & 1) && theirs) votes |= uint64_t{1} << lane;
  }
  return votes;
}
inline int __any(int predicate, int site = __builtin_LINE()) { return __ballot(predicate, site) != 0; }
inline int __all(int predicate, int site = __builtin_LINE()) {
  const uint64_t votes = __ballot(predicate, site);
  return votes == hipemu_warp_active();
}
inline uint64_t __activemask(int site = __builtin_LINE()) { return __ballot(1, site); }

#if HIPEMU_ROCM >= 7
// The same with a mask of the lanes that take part, 64 bits wide. The mask is not checked: those that are there do.
template <class M, class T>
inline T __shfl_sync(M, T value, int source, int width = 64, int site = __builtin_LINE()) {
  static_assert(sizeof(M) == 8, "The mask must be a 64-bit integer.");
  return __shfl(value, source, width, site);
}
template <class M, class T>
inline T __shfl_up_sync(M, T value, unsigned delta, int width = 64, int site = __builtin_LINE()) {
  static_assert(sizeof(M) == 8, "The mask must be a 64-bit integer.");
  return __shfl_up(value, delta, width, site);
}
template <class M, class T>
inline T __shfl_down_sync(M, T value, unsigned delta, int width = 64, int site = __builtin_LINE()) {
  static_assert(sizeof(M) == 8, "The mask must be a 64-bit integer.");
  return __shfl_down(value, delta, width, site);
}
template <class M, class T>
inline T __shfl_xor_sync(M, T value, int lanes, int width = 64, int site = __builtin_LINE()) {
  static_assert(sizeof(M) == 8, "The mask must be a 64-bit integer.");
  return __shfl_xor(value, lanes, width, site);
}
template <class M>
inline uint64_t __ballot_sync(M mask, int predicate, int site = __builtin_LINE()) {
  static_assert(sizeof(M) == 8, "The mask must be a 64-bit integer.");
  return __ballot(predicate, site) & static_cast<uint64_t>(mask);
}
template <class M>
inline int __any_sync(M mask, int predicate, int site = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, site) != 0;
}
template <class M>
inline int __all_sync(M mask, int predicate, int site = __builtin_LINE()) {
  return __ballot_sync(mask, !predicate, site) == 0;
}
#endif
