#pragma once

#include "satrap/data/bad_rows.h"
#include "satrap/data/data_file.h"
#include "src/data/rows/byte_fields.h"

namespace satrap::data {

/// Records that a cache and a delivery hold besides the rows. Reading throws Error(kCorrupt) for
/// bytes that are none.
void put_bad_rows(const BadRows& bad, ByteWriter& out);
BadRows get_bad_rows(ByteReader& in);

void put_data_file(const DataFile& file, ByteWriter& out);
DataFile get_data_file(ByteReader& in);

}  // namespace satrap::data
