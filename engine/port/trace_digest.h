// The digest of a run: XXH3-128 of everything a trace sink hears, as canonical words, in order.
//
// Two runs are equal if their digests are, and so are two beginnings of runs; that is how the first line at which runs
// part is found by bisection. Words are gathered and hashed a few lines at a time. A value. Not thread-safe.
#pragma once
#include <algorithm>
#include <array>
#include <span>

#include "engine/base/running_hash.h"
#include "engine/port/trace_words.h"

namespace areal::port {

class TraceDigest final : public TraceSink {
 public:
  void on_event(const TraceEvent& event) override { end_at(write_words(event, end())); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    end_at(write_words(node, slot, digest, end()));
  }
  void on_stream(std::uint32_t stream, std::string_view name) override { end_at(write_words(stream, name, end())); }
  void on_decision(const Decision& decision) override { end_at(write_words(decision, end())); }
  // Whole lines, as their words.
  void on_words(std::span<const std::uint64_t> words) {
    if (words.size() <= kMostLineWords) return end_at(std::copy(words.begin(), words.end(), end()));
    hash_.add({gathered_.data(), size_});
    hash_.add(words);
    size_ = 0;
  }

  // Of everything so far.
  [[nodiscard]] Digest128 digest() const {
    RunningHash whole = hash_;
    whole.add({gathered_.data(), size_});
    return whole.digest();
  }

 private:
  static constexpr std::size_t kGather = 256;

  std::uint64_t* end() { return gathered_.data() + size_; }
  void end_at(const std::uint64_t* end) {
    size_ = static_cast<std::size_t>(end - gathered_.data());
    if (size_ < kGather) return;
    hash_.add({gathered_.data(), size_});
    size_ = 0;
  }

  RunningHash hash_;
  std::array<std::uint64_t, kGather + kMostLineWords> gathered_{};
  std::size_t size_ = 0;
};

}  // namespace areal::port
