// What went wrong: the last error of a thread, the sticky error of the process, names and texts.
//
// A sticky error is the emulator's promise that nothing is wrong in silence: what cannot be emulated, or a kernel that
// touched an illegal address, fails every later call that can report an error, with a text that names the culprit.
#pragma once

#include <string>

#include "abi.h"

namespace hipemu::errors {

const char* name(hipError_t code);
const char* text(hipError_t code);

// The last thing an API function does: a sticky error wins over `code`; an error becomes the thread's last error.
hipError_t finish(hipError_t code);

hipError_t take_last();
hipError_t peek_last();

// Sets the sticky error unless one stands already, and says so once on stderr.
void stick(hipError_t code, const std::string& why);
hipError_t sticky();
void clear_sticky();

// An error for a call that its caller checks: not sticky, but its text says why.
hipError_t refuse(hipError_t code, const std::string& why);

// The same for what is not emulated: hipErrorNotSupported, which names it.
hipError_t unsupported(const char* what);

}  // namespace hipemu::errors
