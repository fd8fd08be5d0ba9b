#pragma once

#include <nlohmann/json_fwd.hpp>

#include "satrap/trainer/export.h"
#include "src/trainer/loaded_model.h"

namespace satrap::trainer {

/// The part of export.json that describes how a row of text becomes the dense network's inputs:
/// "labels", "text", "numeric", "features", "tables" (without their files) and "model".
nlohmann::ordered_json describe_model(const LoadedModel& loaded, NetworkFormat format);

/// Whether predictions are not the sigmoid of every logit: then each label says what they are.
bool predicts_otherwise(const LoadedModel& loaded);

/// The network's file in the folder.
const char* network_file(NetworkFormat format);

}  // namespace satrap::trainer
