#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "satrap/checkpoint/continuation.h"
#include "satrap/core/choice.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"

namespace satrap::trainer {

/// How the dense network is written: dense.onnx, dense.pt, or dense.pt2 of a network in Python.
enum class NetworkFormat { kOnnx, kTorchScript, kPt2 };
inline constexpr Choice<NetworkFormat> kNetworkFormats[] = {
    {"onnx", NetworkFormat::kOnnx},
    {"torchscript", NetworkFormat::kTorchScript},
    {"pt2", NetworkFormat::kPt2}};

/// How the rows of tables are written: two files .npy for each table, or one file .safetensors.
enum class RowsFormat { kNpy, kSafetensors };
inline constexpr const char* kRowsFormatNames[] = {"npy", "safetensors"};

struct ExportOptions {
  /// nullopt: ONNX, which needs no PyTorch; for a user's TorchScript module TorchScript, for a
  /// network in Python pt2.
  std::optional<NetworkFormat> network = std::nullopt;
  RowsFormat rows = RowsFormat::kNpy;
  bool overwrite = false;                   // an earlier export
  pipeline::MakeNetwork make_network = {};  // as in TrainOptions
};

/// The content of a written export, and the checkpoint that it came from.
struct Exported {
  std::string checkpoint;
  std::int64_t step = 0;
  std::int64_t rows = 0;   // of all tables
  std::int64_t bytes = 0;  // of all files
};

/// Writes the model of a checkpoint (or the newest of a directory) to the folder `out`, in formats
/// for a program that scores rows without satrap:
///
///   dense.onnx          the dense network, ONNX: of numeric [n, numeric inputs] and pooled
///                       [n, width] it gives the logits [n, labels or classes]; `prediction` of a
///                       label says what is predicted by them: their sigmoid (also without it), the
///                       number itself (identity), or the softmax over the classes
///   dense.pt            or the network as TorchScript: forward(numeric, pooled) gives the logits,
///                       [n] for one output
///   dense.pt2           or a network in Python as a program of torch.export, with the inputs and
///                       the output of dense.onnx
///   dense.safetensors   parameters and buffers of a network in Python
///   <table>.keys.npy    [rows] uint64, in no order: the id of each row in the data, if it is below
///                       2^54, else splitmix64(id) mod 2^54
///   <table>.weights.npy [rows, dim] fp32; or <table>.safetensors with both, as the tensors `keys`
///                       and `weights`
///   export.json         how text becomes the network's inputs: columns, numeric transforms with
///                       their fitted numbers, features with table, pooling and place; the weights
///                       of an id without a row; size and XXH3 of every other file
///
/// Characters of a table's name other than letters, digits, '_', '-' and '.' are written as %XX.
/// python/satrap/scorer.py reads all of this in Python.
///
/// Throws as check_predictions: export.json describes inputs as the configuration reads them.
/// `out` appears complete or not at all. If it holds files already: Error(kInvalidConfig), unless
/// they are an earlier export that is to be overwritten. Throws what DenseNetwork::to_onnx,
/// to_torchscript and to_pt2 throw. Reads table by table, for .safetensors twice;
/// needs little memory.
Exported export_model(const job::JobConfig& config,
                      const checkpoint::UsedCheckpoint& checkpoint,
                      const std::string& out,
                      const ExportOptions& options);

}  // namespace satrap::trainer
