// Device memory that frees itself, for tests and benchmarks; a failed call ends the program with its reason.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace areal::tests {

inline void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}
inline void must(const Status& status) {
  if (status) return;
  std::printf("%s\n", status.error().detail.c_str());
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  if (result) return std::move(result).value();
  std::printf("%s\n", result.error().detail.c_str());
  std::exit(1);
}

inline bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

inline void wait_for_device() { must(cudaDeviceSynchronize(), "device"); }

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    must(cudaMalloc(&data_, (count > 0 ? count : 1) * sizeof(T)), "device memory");
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { put(values); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  void put(std::span<const T> values) const {
    must(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice), "to device");
  }
  void fill(int byte) const { must(cudaMemset(data_, byte, count_ * sizeof(T)), "fill"); }
  [[nodiscard]] std::vector<T> host(std::size_t first, std::size_t count) const {
    std::vector<T> values(count);
    must(cudaMemcpy(values.data(), data_ + first, count * sizeof(T), cudaMemcpyDeviceToHost), "from device");
    return values;
  }
  [[nodiscard]] std::vector<T> host() const { return host(0, count_); }
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

template <class T>
DeviceArray<T> on_device(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

}  // namespace areal::tests
