#pragma once

#include <map>
#include <string>

namespace simt {

/// The names and addresses of all functions of the running program, local ones included.
std::map<std::string, const void*> functions_of_this_program();

/// A kernel's name as its source has it, without namespaces and parameters.
std::string name_of_kernel(const void* kernel);

}  // namespace simt
