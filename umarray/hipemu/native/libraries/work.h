// For the emulated libraries: `enqueue(stream, name, function)` runs a C++ callable in a stream's order.
#pragma once

#include <utility>

extern "C" {
int hipemu_enqueue(void* stream, const char* name, void (*work)(void*), void (*drop)(void*), void* data, int wait);
void* hipemu_shift(const void* pointer, void* stream);
void* hipemu_shift_here(const void* pointer);
}

namespace hipemu {

template <class F>
int enqueue(void* stream, const char* name, F function, bool wait = false) {
  auto* held = new F(std::move(function));
  return hipemu_enqueue(
      stream, name, [](void* p) { (*static_cast<F*>(p))(); }, [](void* p) { delete static_cast<F*>(p); }, held, wait);
}

template <class T>
T* shift(T* pointer, void* stream) {
  return static_cast<T*>(hipemu_shift(pointer, stream));
}
template <class T>
T* shift_here(T* pointer) {
  return static_cast<T*>(hipemu_shift_here(pointer));
}

}  // namespace hipemu
