#pragma once

/// Kernels of races_test.cpp, compiled as those of modules are.
namespace race_kernels {

/// Whether this build's kernels tell what they touch: not with another sanitizer.
bool kernels_tell();

void store(float* to, int count);
void store_bytes(unsigned char* to, int count);
void load(const float* from, int count, float* sums);
void count_up(unsigned* counter);  // by an atomic
void store_shared(float* to);      // by way of shared memory

}  // namespace race_kernels
