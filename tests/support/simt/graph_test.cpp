#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "tests/support/simt/counts.h"
#include "tests/support/simt/nccl_ranks.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two streams, an event of each, and memory of a device.
struct Captures {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr, other_event = nullptr;
  unsigned char *values = nullptr, *pinned = nullptr;

  Captures() {
    for (cudaStream_t* made : {&stream, &other}) cudaStreamCreateWithPriority(made, 0, 0);
    for (cudaEvent_t* made : {&event, &other_event}) cudaEventCreateWithFlags(made, 0);
    cudaMalloc(reinterpret_cast<void**>(&values), 16);
    cudaHostAlloc(reinterpret_cast<void**>(&pinned), 16, 0);
  }
  ~Captures() {
    for (const cudaEvent_t e : {event, other_event}) cudaEventDestroy(e);
    for (const cudaStream_t s : {stream, other}) cudaStreamDestroy(s);
    cudaFree(values);
    cudaFreeHost(pinned);
    cudaGetLastError();
  }
  Captures(const Captures&) = delete;
  Captures& operator=(const Captures&) = delete;

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) const {
    EXPECT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  }
  /// How the capture ends, without a use of what was captured.
  cudaError_t end() const {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return error;
  }
};

struct Graph {
  cudaGraphExec_t exec = nullptr;
  explicit Graph(cudaStream_t captured) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  ~Graph() { cudaGraphExecDestroy(exec); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

TEST(SimtGraphs, WhatIsCapturedRunsWhenItIsLaunched) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    simt::set_seed(seed);
    const Captures b;
    std::vector<int> order;
    b.begin();
    simt::enqueue(b.stream, [&] { order.push_back(1); });
    simt::enqueue(b.stream, [&] { order.push_back(2); });
    const Graph graph(b.stream);
    cudaStreamSynchronize(b.stream);
    EXPECT_THAT(order, ElementsAre());
    simt::enqueue(b.stream, [&] { order.push_back(0); });
    EXPECT_EQ(cudaGraphLaunch(graph.exec, b.stream), cudaSuccess);
    simt::enqueue(b.stream, [&] { order.push_back(3); });
    EXPECT_EQ(cudaGraphLaunch(graph.exec, b.stream), cudaSuccess);
    cudaStreamSynchronize(b.stream);
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 1, 2));
  }
  simt::set_seed(0);
}

/// What is reported when two streams of a capture fill the same bytes.
std::string report_of_fills(bool in_order) {
  const Captures b;
  b.begin();
  cudaEventRecord(b.event, b.stream);
  cudaStreamWaitEvent(b.other, b.event);
  cudaMemsetAsync(b.values, 1, 16, b.other);
  cudaEventRecord(b.other_event, b.other);
  if (in_order) cudaStreamWaitEvent(b.stream, b.other_event);
  cudaMemsetAsync(b.values, 2, 16, b.stream);
  cudaStreamWaitEvent(b.stream, b.other_event);
  const Graph graph(b.stream);
  cudaGraphLaunch(graph.exec, b.stream);
  try {
    cudaStreamSynchronize(b.stream);
  } catch (const simt::Fault& fault) {
    return fault.what();
  }
  EXPECT_EQ(b.values[7], 2);
  return "";
}

TEST(SimtGraphs, PartsHaveTheirOrderAndNoOther) {
  EXPECT_EQ(report_of_fills(true), "");
  EXPECT_THAT(report_of_fills(false), HasSubstr("race between streams"));
}

TEST(SimtGraphs, CopiesReadWhatIsThereWhenTheyRun) {
  const Captures b;
  b.pinned[0] = 1;
  b.begin();
  cudaMemcpyAsync(b.values, b.pinned, 1, cudaMemcpyDefault, b.stream);
  const Graph graph(b.stream);
  b.pinned[0] = 2;
  cudaGraphLaunch(graph.exec, b.stream);
  cudaStreamSynchronize(b.stream);
  EXPECT_EQ(b.values[0], 2);
  cudaGraphLaunch(graph.exec, b.stream);
  b.pinned[0] = 3;
  EXPECT_THROW(cudaStreamSynchronize(b.stream), simt::Fault);
}

TEST(SimtGraphs, AllStreamsHaveToBeJoined) {
  const Captures b;
  b.begin();
  cudaEventRecord(b.event, b.stream);
  cudaStreamWaitEvent(b.other, b.event);
  cudaMemsetAsync(b.values, 1, 16, b.other);
  EXPECT_EQ(b.end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaStreamSynchronize(b.other), cudaSuccess);  // it has left
}

TEST(SimtGraphs, WaitsSpoilACapture) {
  const Captures b;
  const auto expect_spoiled = [&](const std::function<void()>& call) {
    b.begin();
    cudaEventRecord(b.event, b.stream);
    call();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(b.stream, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaMemsetAsync(b.values, 1, 16, b.stream), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(b.end(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamSynchronize(b.stream), cudaSuccess);
  };
  const auto unsupported = cudaErrorStreamCaptureUnsupported;
  expect_spoiled([&] { EXPECT_EQ(cudaStreamSynchronize(b.stream), unsupported); });
  expect_spoiled([&] { EXPECT_EQ(cudaStreamQuery(b.stream), unsupported); });
  expect_spoiled([&] { EXPECT_EQ(cudaEventSynchronize(b.event), cudaErrorCapturedEvent); });
  expect_spoiled([&] { EXPECT_EQ(cudaEventQuery(b.event), cudaErrorCapturedEvent); });
  expect_spoiled([&] { EXPECT_EQ(cudaEventQuery(b.other_event), unsupported); });
  expect_spoiled([&] { EXPECT_EQ(cudaDeviceSynchronize(), unsupported); });
  expect_spoiled([&] { EXPECT_EQ(cudaFree(b.values), unsupported); });
  void* memory = nullptr;
  expect_spoiled([&] { EXPECT_EQ(cudaMalloc(&memory, 1), unsupported); });
  cudaEventRecord(b.other_event, b.other);
  expect_spoiled([&] {
    EXPECT_EQ(cudaStreamWaitEvent(b.stream, b.other_event), cudaErrorStreamCaptureIsolation);
  });
}

TEST(SimtGraphs, ModesSayWhoseCallsSpoilIt) {
  const Captures b;
  const auto end_after_a_query = [&](cudaStreamCaptureMode mode, bool by_another_thread) {
    b.begin(mode);
    const auto query = [&] { cudaEventQuery(b.other_event); };
    if (by_another_thread) std::thread(query).join();
    if (!by_another_thread) query();
    return b.end();
  };
  EXPECT_EQ(end_after_a_query(cudaStreamCaptureModeGlobal, true),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end_after_a_query(cudaStreamCaptureModeThreadLocal, true), cudaSuccess);
  EXPECT_EQ(end_after_a_query(cudaStreamCaptureModeThreadLocal, false),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end_after_a_query(cudaStreamCaptureModeRelaxed, false), cudaSuccess);
}

TEST(SimtGraphs, CapturesBeginAndEndOnTheirStreamAndThread) {
  const Captures b;
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(b.end(), cudaErrorIllegalState);
  b.begin();
  EXPECT_EQ(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  cudaEventRecord(b.event, b.stream);
  cudaStreamWaitEvent(b.other, b.event);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(b.other, &graph), cudaErrorStreamCaptureUnmatched);
  std::thread([&] { EXPECT_EQ(b.end(), cudaErrorStreamCaptureWrongThread); }).join();
  EXPECT_EQ(b.end(), cudaSuccess);
}

TEST(SimtGraphs, OperationsOfNcclAreReplayed) {
  const auto launches = simt::counts().graph_launches;
  nccl_ranks::run_ranks(2, [](nccl_ranks::Rank& r) {
    float* const value = r.array(std::vector<float>{1});
    EXPECT_EQ(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    nccl_ranks::check(ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, r.comm, r.stream));
    simt::enqueue(r.stream, [=] { ++*value; });
    const Graph graph(r.stream);
    for (int i = 0; i < 2; ++i) cudaGraphLaunch(graph.exec, r.stream);
    r.wait();
    EXPECT_EQ(*value, 7);  // (1 + 1) + 1, then (3 + 3) + 1
  });
  EXPECT_EQ(simt::counts().graph_launches - launches, 4);
}

}  // namespace
