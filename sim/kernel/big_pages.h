// Memory for containers whose items are met in any order: large ones ask for pages of 2 MiB.
//
// With pages of 4 KiB, each item of a queue of a million events also misses the processor's table of pages. What is
// smaller than two big pages comes from the usual allocator, and a system that has no big pages to give changes nothing
// but the time. Stateless, so containers can be copied and swapped. Thread-safe.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace areal::sim {

template <class T>
class BigPages {
 public:
  using value_type = T;

  BigPages() = default;
  template <class Other>
  BigPages(const BigPages<Other>& /*other*/) {}  // NOLINT(google-explicit-constructor): as containers rebind

  // Throws std::bad_alloc.
  [[nodiscard]] T* allocate(std::size_t count) {
    // The library throws where this is built without exceptions.
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) return std::allocator<T>().allocate(count);
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLeastBytes) return static_cast<T*>(::operator new(bytes, kUsual));
    void* memory = ::operator new(bytes, kPage);
    madvise(memory, bytes, MADV_HUGEPAGE);  // A wish: nothing depends on the answer.
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, count * sizeof(T) < kLeastBytes ? kUsual : kPage);
  }

  bool operator==(const BigPages& /*other*/) const { return true; }

 private:
  static constexpr std::align_val_t kUsual{alignof(T) > alignof(std::max_align_t) ? alignof(T)
                                                                                  : alignof(std::max_align_t)};
  static constexpr std::align_val_t kPage{2U << 20};
  static constexpr std::size_t kLeastBytes = 4U << 20;
};

template <class T>
using BigVector = std::vector<T, BigPages<T>>;

}  // namespace areal::sim
