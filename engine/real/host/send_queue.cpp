#include "engine/real/host/send_queue.h"

#include <utility>

#include "engine/base/check.h"

namespace areal::host {

std::size_t SendQueue::push(std::vector<std::uint8_t> bytes, Instant now, Incarnation to) {
  AREAL_CHECK(bytes.size() <= limits_.bytes);
  AREAL_CHECK(limits_.messages > 0);
  std::size_t dropped = 0;
  while (waiting_.size() >= limits_.messages || bytes_ + bytes.size() > limits_.bytes) {
    bytes_ -= waiting_.front().bytes.size();
    waiting_.pop_front();
    ++dropped;
  }
  bytes_ += bytes.size();
  waiting_.push_back({std::move(bytes), now, to});
  return dropped;
}

std::size_t SendQueue::found(Incarnation found) {
  return std::erase_if(waiting_, [&](Waiting& one) {
    if (one.to == 0) one.to = found;
    if (one.to >= found) return false;
    bytes_ -= one.bytes.size();
    return true;
  });
}

std::size_t SendQueue::expire(Instant now) {
  std::size_t dropped = 0;
  while (!waiting_.empty() && now - waiting_.front().since > limits_.age) {
    bytes_ -= waiting_.front().bytes.size();
    waiting_.pop_front();
    ++dropped;
  }
  return dropped;
}

std::optional<std::vector<std::uint8_t>> SendQueue::pop() {
  if (waiting_.empty()) return std::nullopt;
  std::vector<std::uint8_t> bytes = std::move(waiting_.front().bytes);
  waiting_.pop_front();
  bytes_ -= bytes.size();
  return bytes;
}

void SendQueue::clear() {
  waiting_.clear();
  bytes_ = 0;
}

}  // namespace areal::host
