#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

namespace simt {

/// What is queued on streams while they are captured.
struct Capture {
  struct Node {
    std::function<Work()> make;
    std::size_t lane = 0;
    std::vector<std::size_t> after;  // nodes
  };
  const CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool is_valid = true, has_ended = false;
  std::vector<CUstream_st*> lanes;  // the streams that have taken part
  std::vector<int> devices;         //   and the device of each
  std::vector<Node> nodes;
};

/// A stream's part in a capture, or the place in it that an event marks.
struct Captured {
  std::shared_ptr<Capture> capture;
  std::size_t lane = 0;
  std::vector<std::size_t> last;  // nodes before whatever comes next

  explicit operator bool() const { return capture != nullptr; }
  void add(std::function<Work()> make) {
    capture->nodes.push_back({std::move(make), lane, last});
    last = {capture->nodes.size() - 1};
  }
};

}  // namespace simt
