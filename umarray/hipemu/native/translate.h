// Makes a kernel source into a C++ source that g++ compiles: finds the kernels, rewrites dynamic shared memory, appends
// a description of each kernel.
#pragma once

#include <string>
#include <vector>

namespace hipemu {

struct Translated {
  std::string source;
  std::vector<std::string> kernels;
  bool flat = false;  // the only kernel is one CUPY_FOR loop
};

// `expressions` are the name expressions asked for; number i can be loaded as "hipemu_expression_i".
Translated translate(const std::string& source, const std::vector<std::string>& expressions);

}  // namespace hipemu
