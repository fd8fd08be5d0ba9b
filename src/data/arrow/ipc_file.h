#pragma once

#include <memory>
#include <string>

#include "src/data/columnar/parquet.h"

namespace satrap::data {

/// Opens a file of Arrow IPC ("Feather V2"). Its record batches take the place of row groups; one
/// that is read is in memory as a whole, as far as its columns are read.
std::unique_ptr<ParquetFile> open_ipc_file(std::shared_ptr<const RandomFile> file);

/// The same of a stream of Arrow IPC, all of which is then in memory. Bytes after its end are an
/// error.
std::unique_ptr<ParquetFile> open_ipc_stream(std::shared_ptr<const RandomFile> file);

}  // namespace satrap::data
