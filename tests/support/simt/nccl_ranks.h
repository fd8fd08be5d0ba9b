#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <nccl.h>

namespace nccl_ranks {

inline void check(ncclResult_t result) {
  if (result != ncclSuccess) {
    throw std::runtime_error(std::string(ncclGetErrorString(result)) + ": " +
                             ncclGetLastError(nullptr));
  }
}

/// Waits for a condition, with a deadline.
inline bool wait_for(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

inline ncclUniqueId new_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  return id;
}

/// A rank with a device, which its thread uses, and a stream.
class Rank {
 public:
  Rank(const ncclUniqueId& id, int number, int num_ranks, int device, bool blocking = true)
      : rank(number) {
    cudaSetDevice(device);
    cudaStreamCreateWithPriority(&stream, 0, 0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    const ncclResult_t result = ncclCommInitRankConfig(&comm, num_ranks, id, number, &config);
    if (!blocking || result == ncclSuccess) return;
    cudaStreamDestroy(stream);
    check(result);
  }
  ~Rank() {
    if (comm != nullptr) ncclCommDestroy(comm);
    for (void* const memory : memory_) cudaFree(memory);
    cudaStreamDestroy(stream);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// Device memory; the executor's is the host's.
  template <class T>
  T* array(std::size_t count) {
    void* memory = nullptr;
    cudaMalloc(&memory, count * sizeof(T));
    memory_.push_back(memory);
    return static_cast<T*>(memory);
  }
  template <class T>
  T* array(const std::vector<T>& values) {
    T* const made = array<T>(values.size());
    cudaMemcpyAsync(made, values.data(), values.size() * sizeof(T), cudaMemcpyDefault, stream);
    cudaStreamSynchronize(stream);
    return made;
  }

  void wait() const { cudaStreamSynchronize(stream); }

  ncclResult_t status() const {
    ncclResult_t result = ncclSuccess;
    check(ncclCommGetAsyncError(comm, &result));
    return result;
  }
  void wait_until_ready() const {
    if (!wait_for([&] { return status() != ncclInProgress; })) throw std::runtime_error("late");
    check(status());
  }

  int rank;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

 private:
  std::vector<void*> memory_;
};

/// What each rank's thread throws; empty where it throws nothing.
inline std::vector<std::string> errors_of_threads(int num_ranks,
                                                  const std::function<void(int rank)>& run) {
  std::vector<std::string> errors(static_cast<std::size_t>(num_ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline std::vector<std::string> errors_of_ranks(int num_ranks,
                                                const std::function<void(Rank&)>& run) {
  const ncclUniqueId id = new_id();
  return errors_of_threads(num_ranks, [&](int number) {
    Rank rank(id, number, num_ranks, number);
    run(rank);
  });
}

/// Runs ranks as threads, each with a device of its own.
inline void run_ranks(int num_ranks, const std::function<void(Rank&)>& run) {
  for (const std::string& error : errors_of_ranks(num_ranks, run)) EXPECT_EQ(error, "");
}

}  // namespace nccl_ranks
