// For the preloaded library: the runtime's queue, found when it is first needed.
//
// The library is loaded into every process of an emulated program, most of which never touch a device: so it must not
// pull the runtime in. A function of the wheel that calls it has loaded the runtime already.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "../rocm.h"

namespace hipemu {

template <class F>
F* runtime(const char* name) {
  void* library = dlopen(rocm::RUNTIME, RTLD_NOW | RTLD_NOLOAD);
  void* symbol = library ? dlsym(library, name) : nullptr;
  if (!symbol) throw std::runtime_error("hipemu: the emulated runtime is not loaded");
  return reinterpret_cast<F*>(symbol);
}

template <class F>
void enqueue(long stream, const char* name, F work) {
  using Enqueue = int(void*, const char*, void (*)(void*), void (*)(void*), void*, int);
  static Enqueue* const queue = runtime<Enqueue>("hipemu_enqueue");
  auto* held = new F(std::move(work));
  const int bad = queue(
      reinterpret_cast<void*>(stream), name, [](void* p) { (*static_cast<F*>(p))(); },
      [](void* p) { delete static_cast<F*>(p); }, held, 0);
  if (bad) throw std::runtime_error(std::string("hipemu: ") + name + " could not be queued");
}

// On a worker: an address as the device reaches it.
template <class T>
T* shift_here(T* pointer) {
  using Shift = void*(const void*);
  static Shift* const shift = runtime<Shift>("hipemu_shift_here");
  return static_cast<T*>(shift(pointer));
}

}  // namespace hipemu
