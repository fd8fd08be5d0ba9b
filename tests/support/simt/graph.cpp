// Captures of streams, and their replay.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/device.h"
#include "tests/support/simt/runtime.h"
#include "tests/support/simt/turns.h"

struct CUgraph_st {
  std::shared_ptr<const simt::Capture> capture;
};

/// Replays a capture on streams of its own, one for each that took part, so that its parts have the
/// order that they were captured with, and no other.
struct CUgraphExec_st {
  std::shared_ptr<const simt::Capture> capture;
  std::vector<cudaStream_t> lanes;
};

namespace {

using simt::Capture;
using simt::devices;
using simt::remember;
using simt::Turn;
using simt::turns;

/// Whether all nodes come before these, which is where the capture ends.
bool are_joined(const Capture& capture, const std::vector<std::size_t>& last) {
  std::vector<bool> is_before(capture.nodes.size());
  for (const std::size_t node : last) is_before[node] = true;
  for (std::size_t node = capture.nodes.size(); node-- > 0;) {
    if (!is_before[node]) return false;
    for (const std::size_t earlier : capture.nodes[node].after) is_before[earlier] = true;
  }
  return true;
}

std::shared_ptr<CUevent_st> event_of(int device) {
  const auto event = std::make_shared<CUevent_st>();
  event->device = device;
  event->self = event;
  return event;
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Turn turn(turns());
  if (stream == nullptr) return remember(cudaErrorStreamCaptureUnsupported);
  if (stream->captured) return remember(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->lanes = {stream};
  capture->devices = {stream->device};
  devices().captures().push_back(capture);
  stream->captured = {std::move(capture), 0, {}};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Turn turn(turns());
  *status = cudaStreamCaptureStatusNone;
  if (stream == nullptr || !stream->captured) return cudaSuccess;
  *status = stream->captured.capture->is_valid ? cudaStreamCaptureStatusActive
                                               : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Turn turn(turns());
  *graph = nullptr;
  if (stream == nullptr || !stream->captured) return remember(cudaErrorIllegalState);
  const simt::Captured captured = stream->captured;
  Capture& capture = *captured.capture;
  if (capture.origin != stream) return remember(cudaErrorStreamCaptureUnmatched);
  if (capture.mode != cudaStreamCaptureModeRelaxed &&
      capture.thread != std::this_thread::get_id()) {
    return remember(cudaErrorStreamCaptureWrongThread);
  }
  for (CUstream_st* const lane : capture.lanes) lane->captured = {};
  std::erase(devices().captures(), captured.capture);
  capture.has_ended = true;
  if (!capture.is_valid) return remember(cudaErrorStreamCaptureInvalidated);
  if (!are_joined(capture, captured.last)) return remember(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{captured.capture};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const Turn turn(turns());
  auto made = std::make_unique<CUgraphExec_st>(CUgraphExec_st{graph->capture, {}});
  for (const int device : graph->capture->devices) {
    made->lanes.push_back(devices().make_stream(device));
  }
  *exec = made.release();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  const Turn turn(turns());
  if (const cudaError_t error = simt::check_queue(handle)) return error;
  ++simt::counts().graph_launches;
  const Capture& capture = *exec->capture;
  CUstream_st& stream = devices().stream(handle, simt::current_device());
  if (stream.captured) return remember(cudaErrorStreamCaptureUnsupported);  // not simulated
  std::vector<std::shared_ptr<CUevent_st>> events{event_of(stream.device)};
  devices().queue_record(stream, *events.front());
  for (CUstream_st* const lane : exec->lanes) devices().queue_wait(*lane, *events.front());
  for (const Capture::Node& node : capture.nodes) {
    CUstream_st& lane = *exec->lanes[node.lane];
    for (const std::size_t earlier : node.after) devices().queue_wait(lane, *events[1 + earlier]);
    devices().queue(lane, node.make());
    events.push_back(event_of(lane.device));
    devices().queue_record(lane, *events.back());
  }
  for (CUstream_st* const lane : exec->lanes) {
    events.push_back(event_of(lane->device));
    devices().queue_record(*lane, *events.back());
    devices().queue_wait(stream, *events.back());
  }
  for (const auto& event : events) event->self.reset();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Turn turn(turns());
  const std::unique_ptr<CUgraphExec_st> owned(exec);
  for (const cudaStream_t lane : exec->lanes) devices().destroy_stream(lane);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
