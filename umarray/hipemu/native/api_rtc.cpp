// hiprtc*: kernel source to a shared object, by g++.
//
// The code handed out is the shared object's bytes, so that CuPy's disk cache keeps it. Flags are the emulator's own;
// of the caller's only -D, -U, -I and -include matter. Arithmetic is kept strict (no contraction, wrapping integers),
// so that results are NumPy's.
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>

#include "abi.h"
#include "calls.h"
#include "config.h"
#include "process.h"
#include "rocm.h"
#include "translate.h"

using namespace hipemu;

namespace {

enum Result : int {
  success = 0,
  invalid_input = 3,
  invalid_program = 4,
  compilation = 6,
  no_names_after = 8,
  no_names_before = 9,
  bad_name = 10,
  internal = 11,
};

struct Program {
  std::string source;
  std::string name;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> expressions;
  std::vector<std::string> lowered;
  std::string code;
  std::string log;
  bool compiled = false;
};

std::string home() {
  const char* folder = std::getenv("HIPEMU_HOME");
  return folder ? folder : "";
}

// Must be the flags that the header was precompiled with (umarray/hipemu/build.py reads them from kernel_flags.txt).
std::vector<std::string> fixed_flags() {
  std::vector<std::string> flags;
  std::string text = read_file(home() + "/device/kernel_flags.txt");
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find_first_of(" \n", at);
    if (end == std::string::npos) end = text.size();
    if (end > at) flags.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return flags;
}

void add_callers_flags(const std::vector<std::string>& options, std::vector<std::string>* command) {
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    const std::string start = option.substr(0, 2);
    if (start == "-D" || start == "-I" || start == "-U") {
      command->push_back(option);
      if (option.size() == 2 && i + 1 < options.size()) command->push_back(options[++i]);
    } else if (option == "-include" && i + 1 < options.size()) {
      command->push_back(option);
      command->push_back(options[++i]);
    } else if (option.rfind("--define-macro=", 0) == 0) {
      command->push_back("-D" + option.substr(15));
    } else if (option.rfind("--include-path=", 0) == 0) {
      command->push_back("-I" + option.substr(15));
    }
  }
}

bool build(Program* program, const std::vector<std::string>& options) {
  static std::atomic<int> serial{0};
  const std::string folder = scratch_folder() + "/c" + std::to_string(serial++);
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : program->headers) {
    const std::filesystem::path path = folder + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path, text);
  }
  const Translated translated = translate(program->source, program->expressions);
  const std::string source = folder + "/kernel.cpp", object = folder + "/kernel.so";
  const std::string label = program->name.empty() ? "kernel" : program->name;
  write_file(source, "#line 1 \"" + label + "\"\n" + translated.source);
  const char* cxx = std::getenv("HIPEMU_CXX");
  std::vector<std::string> command{cxx && *cxx ? cxx : "g++"};
  for (const std::string& flag : fixed_flags()) command.push_back(flag);
  command.push_back("-I" + home() + "/device");
  command.insert(command.end(), {"-include", "hipemu_device.h"});
  add_callers_flags(options, &command);
  command.push_back("-I" + folder);
  command.insert(command.end(), {"-shared", source, "-o", object, "-Wl,-Bsymbolic", home() + "/lib/" + rocm::RUNTIME});
  const int status = run_command(command, &program->log);
  if (status < 0) program->log = "hipemu: the compiler " + command[0] + " could not be started\n";
  program->code = status == 0 ? read_file(object) : "";
  if (!config().verbose) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  return status == 0 && !program->code.empty();
}

}  // namespace

HIPEMU_EXPORT const char* hiprtcGetErrorString(int result) {
  switch (result) {
    case success: return "HIPRTC_SUCCESS";
    case 1: return "HIPRTC_ERROR_OUT_OF_MEMORY";
    case 2: return "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case invalid_input: return "HIPRTC_ERROR_INVALID_INPUT";
    case invalid_program: return "HIPRTC_ERROR_INVALID_PROGRAM";
    case 5: return "HIPRTC_ERROR_INVALID_OPTION";
    case compilation: return "HIPRTC_ERROR_COMPILATION";
    case 7: return "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    case no_names_after: return "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case no_names_before: return "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case bad_name: return "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    default: return "HIPRTC_ERROR_INTERNAL_ERROR";
  }
}

HIPEMU_EXPORT int hiprtcVersion(int* major, int* minor) {
  HIPEMU_CALL(hiprtcVersion);
  if (!major || !minor) return invalid_input;
  *major = 9;
  *minor = 0;
  return success;
}

HIPEMU_EXPORT int hiprtcCreateProgram(void** handle, const char* source, const char* name, int count,
                                      const char** headers, const char** names) {
  HIPEMU_CALL(hiprtcCreateProgram);
  if (!handle || !source) return invalid_input;
  auto* program = new Program;
  program->source = source;
  program->name = name ? name : "";
  for (int i = 0; i < count; ++i) program->headers.emplace_back(names[i], headers[i]);
  *handle = program;
  return success;
}

HIPEMU_EXPORT int hiprtcDestroyProgram(void** handle) {
  HIPEMU_CALL(hiprtcDestroyProgram);
  if (!handle || !*handle) return success;
  delete static_cast<Program*>(*handle);
  *handle = nullptr;
  return success;
}

HIPEMU_EXPORT int hiprtcAddNameExpression(void* handle, const char* expression) {
  HIPEMU_CALL(hiprtcAddNameExpression);
  auto* program = static_cast<Program*>(handle);
  if (!program || !expression) return invalid_input;
  if (program->compiled) return no_names_after;
  program->lowered.push_back("hipemu_expression_" + std::to_string(program->expressions.size()));
  program->expressions.emplace_back(expression);
  return success;
}

HIPEMU_EXPORT int hiprtcGetLoweredName(void* handle, const char* expression, const char** lowered) {
  HIPEMU_CALL(hiprtcGetLoweredName);
  auto* program = static_cast<Program*>(handle);
  if (!program || !expression || !lowered) return invalid_input;
  if (!program->compiled) return no_names_before;
  for (size_t i = 0; i < program->expressions.size(); ++i) {
    if (program->expressions[i] == expression) {
      *lowered = program->lowered[i].c_str();
      return success;
    }
  }
  return bad_name;
}

HIPEMU_EXPORT int hiprtcCompileProgram(void* handle, int count, const char** options) {
  HIPEMU_CALL(hiprtcCompileProgram);
  auto* program = static_cast<Program*>(handle);
  if (!program) return invalid_program;
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) list.emplace_back(options[i]);
  program->compiled = build(program, list);
  return program->compiled ? success : compilation;
}

// CuPy drops the last byte of what it gets, taking it for a terminating zero: so there is one.
HIPEMU_EXPORT int hiprtcGetCodeSize(void* handle, size_t* size) {
  HIPEMU_CALL(hiprtcGetCodeSize);
  auto* program = static_cast<Program*>(handle);
  if (!program || !size) return invalid_input;
  *size = program->code.size() + 1;
  return success;
}

HIPEMU_EXPORT int hiprtcGetCode(void* handle, char* code) {
  HIPEMU_CALL(hiprtcGetCode);
  auto* program = static_cast<Program*>(handle);
  if (!program || !code) return invalid_input;
  std::memcpy(code, program->code.c_str(), program->code.size() + 1);
  return success;
}

HIPEMU_EXPORT int hiprtcGetProgramLogSize(void* handle, size_t* size) {
  HIPEMU_CALL(hiprtcGetProgramLogSize);
  auto* program = static_cast<Program*>(handle);
  if (!program || !size) return invalid_input;
  *size = program->log.size() + 1;
  return success;
}

HIPEMU_EXPORT int hiprtcGetProgramLog(void* handle, char* log) {
  HIPEMU_CALL(hiprtcGetProgramLog);
  auto* program = static_cast<Program*>(handle);
  if (!program || !log) return invalid_input;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return success;
}
