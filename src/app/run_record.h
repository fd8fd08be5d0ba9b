#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace satrap::app {

/// What a run directory holds, as far as the run has got, in the form that report_page shows:
///   name, path
///   config       [[dotted path, value], ...] of config.yaml, and its text, config_text
///   starts       what each process of the run said of itself, oldest first
///   reports, evaluations   lines of metrics.jsonl, in the order of their steps
///   num_reports            of a long run, `reports` are some of these
///   summary      of summary.json; null: none yet
/// Starts, reports and evaluations have a `step` and `time`, the seconds of training up to there by
/// all processes, and `process`, the number of the one that wrote it. Where a resumed run went
/// back, its later lines win; lines that are torn or damaged are left out.
///
/// Throws Error(kIo) if there is no run at `directory`, Error(kInvalidConfig | kCorrupt) if
/// config.yaml or summary.json is damaged.
nlohmann::ordered_json read_run(const std::string& directory);

}  // namespace satrap::app
