#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace satrap::app {

/// The content of a run directory, or of a run in a store (its URL), finished or not, in the form
/// that report_page shows:
///   name, path
///   config       [[dotted path, value], ...] of config.yaml, and its text, config_text
///   starts       the description that each process of the run wrote, oldest first
///   reports, evaluations   lines of metrics.jsonl, in the order of their steps
///   num_reports            number of reports; `reports` has only some of a long run's
///   summary      of summary.json; null: none yet
///   importance   of importance.json (`satrap eval --importance`); null: none
/// Starts, reports and evaluations have a `step`, a `time`, the seconds of training so far by all
/// processes, and `process`, the number of the one that wrote it. If a resumed run went back, its
/// later lines count; incomplete or damaged lines are skipped.
///
/// Throws Error(kIo) if there is no run at `directory`, Error(kInvalidConfig | kCorrupt) if
/// config.yaml or summary.json is damaged.
nlohmann::ordered_json read_run(const std::string& directory);

}  // namespace satrap::app
