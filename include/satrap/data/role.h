#pragma once

namespace satrap::data {

/// The purpose for which rows are read. kPredict reads only the inputs from the files of kEval: the
/// label's column may be missing, and no line is skipped, so that the n-th row is the n-th line (of
/// all files, headers not counted). Labels are 0, or NaN for a line without a usable row: a blank
/// one, or a bad one if on_bad_row does not end the run.
enum class Role { kTrain, kEval, kPredict };

}  // namespace satrap::data
