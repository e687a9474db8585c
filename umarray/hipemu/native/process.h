// Runs a program and keeps what it says.
#pragma once

#include <string>
#include <vector>

namespace hipemu {

// Exit status of the command, or -1 if it could not be started; `output` gets stdout and stderr.
int run_command(const std::vector<std::string>& command, std::string* output);

// A folder of this process for passing files, made on first use and removed at exit.
const std::string& scratch_folder();

std::string read_file(const std::string& path);
bool write_file(const std::string& path, const std::string& text);

}  // namespace hipemu
