#pragma once

#include <string>

#include "satrap/checkpoint/checkpoint_format.h"

namespace satrap::checkpoint {

/// Refuses what a manifest of the right shape and checksum may still say: negative counts or ones
/// whose sums do not fit, rows of another size than their layout's, tensors without a size, rows
/// and tensors that are not those of the files, files outside of its folder. What passes needs no
/// such checks where it is used. Throws Error(kCorrupt) that begins with `path`, the manifest's.
void check_manifest(const Manifest& manifest, const std::string& path);

}  // namespace satrap::checkpoint
