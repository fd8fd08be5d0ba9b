#pragma once

#include <istream>
#include <string>

#include "tests/support/ptx/instruction.h"

namespace ptx {

/// Reads the kernels of one PTX file and adds them to `module`; a kernel that is there already, as
/// weak entries of several files are, is skipped. Shared arrays are placed as their declarations
/// allow and no better: an array of `.align 4` lies at no multiple of 8. Throws simt::Fault with
/// file and line for what is not modelled: calls, local memory, atomics, fences, block barriers,
/// indirect branches, and forms of instructions that ptx::evaluate does not define.
void parse(std::istream& text, const std::string& file, Module& module);

}  // namespace ptx
