// OpenBLAS behind the emulated libraries, if there is one: HIPEMU_BLAS names its shared object, whose functions carry
// the prefix `scipy_` (the package scipy-openblas32).
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace hipemu::openblas {

inline void* library() {
  static void* const handle = [] {
    const char* path = std::getenv("HIPEMU_BLAS");
    void* opened = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (opened) {
      // One thread: the faults of a kernel are served in the thread that runs it.
      if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(opened, "scipy_openblas_set_num_threads"))) set(1);
    }
    return opened;
  }();
  return handle;
}

// The function, or null without OpenBLAS.
template <class F>
F* find(const char* name) {
  return library() ? reinterpret_cast<F*>(dlsym(library(), (std::string("scipy_") + name).c_str())) : nullptr;
}

}  // namespace hipemu::openblas
