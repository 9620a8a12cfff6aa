// An open file descriptor with one owner, and the error of a failed system call.
#pragma once
#include <string>
#include <utility>

#include "engine/base/result.h"

namespace areal::host {

// Closes what it owns when it goes. Not thread-safe.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_;
};

// kIo with "what: reason", from errno.
Error errno_error(const std::string& what);

}  // namespace areal::host
