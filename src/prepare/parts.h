#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "src/prepare/line_block.h"
#include "src/prepare/workspace.h"

namespace satrap::prepare {

/// Rows of a block as satrap reads them, each with its '\n', by the name of their split. Called by
/// several threads at a time.
using Convert =
    std::function<void(const LineBlock& block, std::map<std::string, std::string>& rows)>;

/// Writes the rows of a source to parts. A piece of request().part_rows lines becomes one part for
/// each split that has rows of it: train-00000.txt.zst, test-00041.txt.zst. Pieces that the
/// manifest has are read and left out.
void write_parts(Workspace& workspace, LineSource& source, const Convert& convert);

}  // namespace satrap::prepare
