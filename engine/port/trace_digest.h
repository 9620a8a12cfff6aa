// The digest of a run: one chain over everything a trace sink hears, in order.
//
// Each line becomes canonical words (a tag, then its fields); chain = chain_digest(chain, hash_words(words)). Two runs
// are equal if their chains are; the first line at which the chains part is where the runs part. Not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "engine/base/digest.h"
#include "engine/port/trace_sink.h"

namespace areal::port {

// The words of one line of a trace, at most as many as the longest event needs.
class TraceWords {
 public:
  explicit TraceWords(const TraceEvent& event);
  TraceWords(NodeId node, SlotId slot, const Digest128& state);
  TraceWords(std::uint32_t stream, std::string_view name);
  explicit TraceWords(const Decision& decision);

  [[nodiscard]] std::span<const std::uint64_t> view() const { return {words_.data(), size_}; }

 private:
  static constexpr std::size_t kMostWords = 10 + 2 * (1 + kMaxRecordWords);

  void add(std::uint64_t word) { words_[size_++] = word; }
  void add(const Record& record);

  std::array<std::uint64_t, kMostWords> words_;
  std::size_t size_ = 0;
};

class TraceDigest : public TraceSink {
 public:
  TraceDigest() = default;
  // Goes on from `start`, the chain after everything before.
  explicit TraceDigest(const Digest128& start) : chain_(start) {}

  void on_event(const TraceEvent& event) override { link(TraceWords(event)); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { link(TraceWords(node, slot, digest)); }
  void on_stream(std::uint32_t stream, std::string_view name) override { link(TraceWords(stream, name)); }
  void on_decision(const Decision& decision) override { link(TraceWords(decision)); }

  [[nodiscard]] const Digest128& digest() const { return chain_; }

 private:
  void link(const TraceWords& words) { chain_ = chain_digest(chain_, hash_words(words.view())); }

  Digest128 chain_;
};

}  // namespace areal::port
