#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/trainer/appended_file.h"

namespace satrap::trainer {

/// Scalars for TensorBoard: one file of its events directory. The format is that of TensorFlow:
/// records (tensorflow/core/lib/io/record_writer.h: length, data, and a masked CRC32C of each)
/// of Event messages (tensorflow/core/util/event.proto).
class EventFile {
 public:
  /// Begins a new file in `directory`, which it creates; TensorBoard reads the file after the
  /// existing ones and `others`, names of files that are elsewhere. Their entries for `first_step`
  /// and later are void: those steps are trained again. Throws Error(kIo).
  EventFile(const std::string& directory,
            std::int64_t first_step,
            const std::vector<std::string>& others = {});

  /// Writes every number in `line`, and in objects in it, as a scalar of `step`: {"train": {"auc":
  /// 0.7}} is train/auc. Of a full disk see AppendedFile.
  void add(std::int64_t step, const nlohmann::ordered_json& line);

  const std::string& path() const { return file_.path(); }

 private:
  void write_event(std::int64_t step, std::string_view content);

  AppendedFile file_;
};

}  // namespace satrap::trainer
