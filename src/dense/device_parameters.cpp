#include "src/dense/device_parameters.h"

#include <algorithm>

namespace satrap::dense {
DeviceParameters::DeviceParameters(backend::Device& device,
                                   const backend::Stream& stream,
                                   DenseState& state)
    : device_(device),
      stream_(stream),
      state_(state),
      num_values_(DenseNetwork::kFlagFloats + state.parameters.size()) {
  const std::int64_t num_parameters = state.parameters.size(), num_buffers = state.buffers.size();
  const std::int64_t num_first = std::ssize(state.optimizer.first());
  const std::int64_t num_second = std::ssize(state.optimizer.second());
  const std::int64_t num_scale = state.loss_scale.size();
  std::int64_t bytes = 0;
  for (const std::int64_t count : {num_parameters, num_buffers, num_buffers, num_values_, num_first,
                                   num_second, std::int64_t{1}, std::int64_t{1}, num_scale}) {
    bytes += backend::arena_bytes<float>(count);
  }
  block_ = {device, backend::Place::kDevice, bytes, "the dense network"};
  auto* next = block_.data();
  const auto take = [&](std::int64_t count) {
    auto* const begin = reinterpret_cast<float*>(next);
    next += backend::arena_bytes<float>(count);
    return count == 0 ? nullptr : begin;
  };
  memory_.num_parameters = num_parameters;
  memory_.num_buffer_values = num_buffers;
  memory_.parameters = take(num_parameters);
  memory_.buffers = take(num_buffers);
  memory_.next_buffers = take(num_buffers);
  memory_.flag = take(num_values_);
  memory_.gradient = memory_.flag + DenseNetwork::kFlagFloats;
  memory_.first = take(num_first);
  memory_.second = take(num_second);
  memory_.num_updates = take(1);
  memory_.learning_rate = take(1);
  memory_.loss_scale = take(num_scale);
  device.fill(block_.data(), 0, bytes, stream);
  stream.wait_until_idle();
}

void DeviceParameters::fetch() {
  device_.use_on_this_thread();
  const auto copy = [&](std::span<float> to, const float* from) {
    device_.copy(to.data(), from, static_cast<std::int64_t>(to.size_bytes()), stream_);
  };
  copy(state_.parameters.span(), memory_.parameters);
  copy(state_.buffers.span(), memory_.buffers);
  copy(state_.optimizer.first(), memory_.first);
  copy(state_.optimizer.second(), memory_.second);
  if (float* const updates = state_.optimizer.num_updates())
    copy({updates, 1}, memory_.num_updates);
  copy(state_.loss_scale.span(), memory_.loss_scale);
  stream_.wait_until_idle();
}

void DeviceParameters::push() {
  device_.use_on_this_thread();
  const auto copy = [&](float* to, std::span<const float> from) {
    device_.copy(to, from.data(), static_cast<std::int64_t>(from.size_bytes()), stream_);
  };
  copy(memory_.parameters, state_.parameters.span());
  copy(memory_.buffers, state_.buffers.span());
  copy(memory_.first, state_.optimizer.first());
  copy(memory_.second, state_.optimizer.second());
  if (float* const updates = state_.optimizer.num_updates())
    copy(memory_.num_updates, {updates, 1});
  copy(memory_.loss_scale, state_.loss_scale.span());
  stream_.wait_until_idle();
}

void DeviceParameters::fetch_loss_scale() {
  device_.use_on_this_thread();
  device_.copy(state_.loss_scale.data(), memory_.loss_scale, bytes_of(state_.loss_scale.size()),
               stream_);
  stream_.wait_until_idle();
}

void DeviceParameters::clear_gradient() {
  device_.fill(memory_.flag, 0, bytes_of(num_values_), stream_);
  if (memory_.num_buffer_values == 0) return;
  device_.copy(memory_.next_buffers, memory_.buffers, bytes_of(memory_.num_buffer_values), stream_);
}

float* DeviceParameters::all_on_host() {
  if (host_.bytes() == 0) {
    host_ = {device_, backend::Place::kPinnedHost, bytes_of(num_values_), "the dense gradient"};
  }
  auto* const host = reinterpret_cast<float*>(host_.data());
  if (!is_on_host_) {
    device_.use_on_this_thread();
    device_.copy(host, memory_.flag, bytes_of(num_values_), stream_);
    stream_.wait_until_idle();
    is_on_host_ = true;
  }
  is_changed_ = true;
  return host;
}

std::span<float> DeviceParameters::gradient_on_host() {
  return {all_on_host() + DenseNetwork::kFlagFloats,
          static_cast<std::size_t>(memory_.num_parameters)};
}

std::span<float> DeviceParameters::flag_and_first_bucket_on_host() {
  const std::int64_t bucket = std::min(memory_.num_parameters, DenseNetwork::kGradientBucket);
  return {all_on_host(), static_cast<std::size_t>(DenseNetwork::kFlagFloats + bucket)};
}

float DeviceParameters::flag_on_host() {
  if (is_on_host_) return *reinterpret_cast<const float*>(host_.data());
  float flag = 0.0F;
  device_.use_on_this_thread();
  device_.copy(&flag, memory_.flag, bytes_of(1), stream_);
  stream_.wait_until_idle();
  return flag;
}

void DeviceParameters::give_back_gradient() {
  if (!is_changed_) return;
  device_.copy(memory_.flag, host_.data(), bytes_of(num_values_), stream_);
  is_changed_ = false;
}

}  // namespace satrap::dense
