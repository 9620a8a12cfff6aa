// Messages that wait for one peer, bounded by number, bytes and age; the oldest go first. Each is for one process of
// it.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/time.h"

namespace areal::host {

// Not thread-safe.
class SendQueue {
 public:
  struct Limits {
    std::size_t messages = 0;
    std::size_t bytes = 0;
    Duration age{};
  };
  explicit SendQueue(const Limits& limits) : limits_(limits) {}

  // `to`: the process it is for; 0: the first that is found. Returns how many older messages had to go for it.
  // REQUIRES: bytes.size() <= limits.bytes.
  std::size_t push(std::vector<std::uint8_t> bytes, Instant now, Incarnation to);
  // The peer's present process is `found`: drops what is for earlier ones; returns how many.
  std::size_t found(Incarnation found);
  // Drops what is too old; returns how many.
  std::size_t expire(Instant now);
  std::optional<std::vector<std::uint8_t>> pop();
  void clear();

  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Waiting {
    std::vector<std::uint8_t> bytes;
    Instant since{};
    Incarnation to = 0;
  };
  Limits limits_;
  std::deque<Waiting> waiting_;  // Ascending by age of entry.
  std::size_t bytes_ = 0;
};

}  // namespace areal::host
