// hipModule*: code that hiprtc made, loaded and launched.
//
// A module is a shared object, loaded from a file of its own name (a name that was loaded before would silently give
// the earlier one). A kernel's arguments are copied when it is launched, and every aligned word of them that is an
// address of ours is shifted into the device's view: that reaches pointers inside CuPy's array structs. Pointers that
// are stored in memory are not shifted; see faults.h for what becomes of them.
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "abi.h"
#include "block.h"
#include "calls.h"
#include "device.h"
#include "errors.h"
#include "process.h"
#include "rocm.h"
#include "space.h"
#include "stream.h"
#include "worker.h"

using namespace hipemu;

namespace {

struct Module {
  void* library = nullptr;
  ~Module() {
    if (library) dlclose(library);
  }
};

struct Function {
  std::shared_ptr<Module> module;
  const hipemu_kernel* kernel = nullptr;
  std::string name;
};

struct Table {
  std::mutex mutex;
  std::map<hipModule_t, std::shared_ptr<Module>> modules;
  std::map<hipFunction_t, std::shared_ptr<Function>> functions;
};

Table& table() {
  static auto* const t = new Table;
  return *t;
}

// The size of a shared object in memory, from its own header: hipModuleLoadData is told no length.
size_t image_size(const char* image) {
  if (std::memcmp(image, "\177ELF", 4) != 0) return 0;
  uint64_t sections = 0;
  uint16_t each = 0, count = 0;
  std::memcpy(&sections, image + 40, 8);
  std::memcpy(&each, image + 58, 2);
  std::memcpy(&count, image + 60, 2);
  return sections + static_cast<size_t>(each) * count;
}

hipError_t load(hipModule_t* handle, const std::string& path) {
  auto module = std::make_shared<Module>();
  module->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module->library) {
    errors::stick(hipErrorSharedObjectInitFailed, dlerror());
    return hipErrorSharedObjectInitFailed;
  }
  *handle = module.get();
  const std::lock_guard<std::mutex> held(table().mutex);
  table().modules[*handle] = std::move(module);
  return hipSuccess;
}

std::shared_ptr<Module> find_module(hipModule_t handle) {
  const std::lock_guard<std::mutex> held(table().mutex);
  const auto found = table().modules.find(handle);
  return found == table().modules.end() ? nullptr : found->second;
}

// The description behind a kernel's name; a mangled name stands for the function that it names.
const hipemu_kernel* describe(const Module& module, const std::string& name) {
  if (void* symbol = dlsym(module.library, ("hipemu_kernel_" + name).c_str())) {
    return static_cast<const hipemu_kernel*>(symbol);
  }
  int status = 0;
  char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  const std::string text = status == 0 && plain ? plain : "";
  std::free(plain);
  const std::string base = text.substr(0, text.find('('));
  if (base.empty()) return nullptr;
  return static_cast<const hipemu_kernel*>(dlsym(module.library, ("hipemu_kernel_" + base).c_str()));
}

// A launch's own copy of its arguments.
struct Arguments {
  std::unique_ptr<char[]> bytes;
  std::unique_ptr<void*[]> pointers;
};

std::shared_ptr<Arguments> copy_arguments(const hipemu_kernel& kernel, void** parameters, int device) {
  auto copy = std::make_shared<Arguments>();
  size_t total = 0;
  for (int i = 0; i < kernel.count; ++i) total += (kernel.sizes[i] + 15) / 16 * 16;
  copy->bytes = std::make_unique<char[]>(total + 16);
  copy->pointers = std::make_unique<void*[]>(static_cast<size_t>(kernel.count) + 1);
  char* at = copy->bytes.get();
  at += (16 - reinterpret_cast<uintptr_t>(at) % 16) % 16;
  const Space& space = Space::get();
  for (int i = 0; i < kernel.count; ++i) {
    const size_t size = kernel.sizes[i];
    std::memcpy(at, parameters[i], size);
    for (size_t word = 0; word + sizeof(void*) <= size; word += sizeof(void*)) {
      void* value;
      std::memcpy(&value, at + word, sizeof value);
      value = space.shifted(value, device);
      std::memcpy(at + word, &value, sizeof value);
    }
    copy->pointers[static_cast<size_t>(i)] = at;
    at += (size + 15) / 16 * 16;
  }
  return copy;
}

}  // namespace

HIPEMU_EXPORT hipError_t hipModuleLoadData(hipModule_t* handle, const void* image) {
  HIPEMU_CALL(hipModuleLoadData);
  if (!handle || !image) return errors::finish(hipErrorInvalidValue);
  static std::atomic<int> serial{0};
  const size_t size = image_size(static_cast<const char*>(image));
  if (!size) return errors::finish(hipErrorInvalidImage);
  const std::string path = scratch_folder() + "/m" + std::to_string(serial++) + ".so";
  if (!write_file(path, std::string(static_cast<const char*>(image), size))) {
    return errors::finish(hipErrorOperatingSystem);
  }
  const hipError_t result = load(handle, path);
  unlink(path.c_str());
  return errors::finish(result);
}

HIPEMU_EXPORT hipError_t hipModuleLoad(hipModule_t* handle, const char* path) {
  HIPEMU_CALL(hipModuleLoad);
  if (!handle || !path) return errors::finish(hipErrorInvalidValue);
  const std::string image = read_file(path);
  if (image.empty()) return errors::finish(hipErrorFileNotFound);
  if (image.size() < 64 || image_size(image.data()) > image.size()) return errors::finish(hipErrorInvalidImage);
  return hipModuleLoadData(handle, image.data());
}

HIPEMU_EXPORT hipError_t hipModuleUnload(hipModule_t handle) {
  HIPEMU_CALL(hipModuleUnload);
  const std::lock_guard<std::mutex> held(table().mutex);
  const auto found = table().modules.find(handle);
  if (found == table().modules.end()) return errors::finish(hipErrorInvalidHandle);
  for (auto it = table().functions.begin(); it != table().functions.end();) {
    it = it->second->module == found->second ? table().functions.erase(it) : std::next(it);
  }
  table().modules.erase(found);
  return hipSuccess;
}

HIPEMU_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* handle, hipModule_t module, const char* name) {
  HIPEMU_CALL(hipModuleGetFunction);
  if (!handle || !name) return errors::finish(hipErrorInvalidValue);
  auto function = std::make_shared<Function>();
  function->module = find_module(module);
  if (!function->module) return errors::finish(hipErrorInvalidHandle);
  function->kernel = describe(*function->module, name);
  if (!function->kernel || !function->kernel->run) return errors::finish(hipErrorNotFound);
  function->name = name;
  *handle = function.get();
  const std::lock_guard<std::mutex> held(table().mutex);
  table().functions[*handle] = std::move(function);
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* bytes, hipModule_t handle,
                                            const char* name) {
  HIPEMU_CALL(hipModuleGetGlobal);
  const std::shared_ptr<Module> module = find_module(handle);
  if (!module || !name) return errors::finish(hipErrorInvalidHandle);
  void* address = nullptr;
  size_t size = 0;
  if (const auto* described = describe(*module, name); described && !described->run) {
    address = described->address;
    size = described->bytes;
  } else {
    address = dlsym(module->library, name);
  }
  if (!address) return errors::finish(hipErrorNotFound);
  if (pointer) *pointer = address;
  if (bytes) *bytes = size;
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipFuncGetAttribute(int* value, int attribute, hipFunction_t handle) {
  HIPEMU_CALL(hipFuncGetAttribute);
  if (!value) return errors::finish(hipErrorInvalidValue);
  {
    const std::lock_guard<std::mutex> held(table().mutex);
    if (!table().functions.count(handle)) return errors::finish(hipErrorInvalidHandle);
  }
  switch (attribute) {
    case 0: *value = 1024; break;           // threads of a block
    case 1: case 2: case 3: *value = 0; break;  // static shared, constant, local bytes: not known
    case 4: *value = 32; break;             // registers
    case 5: case 6: *value = 90; break;     // versions
    case 8: *value = 64 << 10; break;       // dynamic shared bytes
    default: *value = 0; break;
  }
  return errors::finish(hipSuccess);
}

HIPEMU_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                               hipStream_t stream_handle, void** parameters, void** extra) {
  HIPEMU_CALL(hipModuleLaunchKernel);
  std::shared_ptr<Function> function;
  {
    const std::lock_guard<std::mutex> held(table().mutex);
    const auto found = table().functions.find(handle);
    if (found == table().functions.end()) return errors::finish(hipErrorInvalidHandle);
    function = found->second;
  }
  const uint64_t threads = uint64_t{block_x} * block_y * block_z;
  const hipError_t bad = rocm::MAJOR == 5 ? hipErrorInvalidConfiguration : hipErrorInvalidValue;  // renamed in 7.0
  if (!grid_x || !grid_y || !grid_z || !threads || shared > (64u << 10)) return errors::finish(bad);
  if (threads > 1024) return errors::finish(hipErrorInvalidConfiguration);
  if (extra) return errors::unsupported("hipModuleLaunchKernel with packed arguments");
  if (!parameters && function->kernel->count) return errors::finish(hipErrorInvalidValue);
  const StreamPtr stream = streams::resolve(stream_handle);
  if (!stream) return errors::finish(hipErrorInvalidHandle);
  const auto arguments = copy_arguments(*function->kernel, parameters, stream->device);
  const dim3 grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
  streams::submit(stream, [=] {
    worker::running() = function->name;
    block::run_grid(*function->kernel, grid, block, shared, arguments->pointers.get());
  });
  return errors::finish(hipSuccess);
}
