#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "satrap/data/label_config.h"
#include "satrap/data/row_block.h"

namespace satrap::data {

// Blocks of rows as bytes, for files and messages. Integers take as many bytes each (0, 1, 2, 4 or
// 8) as the range of their column needs: Criteo's rows 160 to 190, instead of 480 in memory. The
// bytes are little-endian and begin with their version. They have no checksum.

/// Appends the rows to `bytes`.
void append_block(const RowBlock& block, std::vector<std::byte>& bytes);

/// Replaces the rows of `block` by those in `bytes`, which are of append_block and nothing else.
/// `block` says which columns are expected, as RowBlock::clear and `kept` have set them, and
/// `labels`, [block.num_labels], what their labels may be. Throws Error(kCorrupt) if the bytes are
/// truncated, too long, of another version, of other columns or have another label; the block then
/// holds no usable rows. Takes memory in proportion to the bytes.
void read_block(std::span<const std::byte> bytes,
                std::span<const NamedLabelConfig> labels,
                RowBlock& block);

}  // namespace satrap::data
