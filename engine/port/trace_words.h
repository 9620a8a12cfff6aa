// The canonical words of the lines of a trace: what digests hash, and what a batch of lines is carried as.
//
// Each line is a tag, then its fields; a record is its kind and size, then its words. A line says by its first words
// how long it is. Two lines are equal if their words are. Not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/port/trace_sink.h"

namespace areal::port {

// What kind of line the words come from, so that no two kinds can have equal words.
enum class LineTag : std::uint8_t { kEvent = 1, kState, kStream, kDecision };

// The longest line is an event with two full records.
inline constexpr std::size_t kMostLineWords = 10 + 2 * (1 + kMaxRecordWords);

// Write one line to `out` and give the end of it. REQUIRES: there is room for kMostLineWords. A stream's name becomes
// the words of its hash.
std::uint64_t* write_words(const TraceEvent& event, std::uint64_t* out);
std::uint64_t* write_words(NodeId node, SlotId slot, const Digest128& state, std::uint64_t* out);
std::uint64_t* write_words(std::uint32_t stream, std::string_view name, std::uint64_t* out);
std::uint64_t* write_words(const Decision& decision, std::uint64_t* out);

// Read what write_words() wrote, and give the end of the line. REQUIRES: a line of that kind begins at `in`.
const std::uint64_t* read_words(const std::uint64_t* in, TraceEvent& event);
const std::uint64_t* read_words(const std::uint64_t* in, NodeId& node, SlotId& slot, Digest128& state);
const std::uint64_t* read_words(const std::uint64_t* in, std::uint32_t& stream);
const std::uint64_t* read_words(const std::uint64_t* in, Decision& decision);

// The words of one line.
class TraceWords {
 public:
  explicit TraceWords(const TraceEvent& event) { end_at(write_words(event, words_.data())); }
  TraceWords(NodeId node, SlotId slot, const Digest128& state) {
    end_at(write_words(node, slot, state, words_.data()));
  }
  TraceWords(std::uint32_t stream, std::string_view name) { end_at(write_words(stream, name, words_.data())); }
  explicit TraceWords(const Decision& decision) { end_at(write_words(decision, words_.data())); }

  [[nodiscard]] std::span<const std::uint64_t> view() const { return {words_.data(), size_}; }

 private:
  void end_at(const std::uint64_t* end) { size_ = static_cast<std::size_t>(end - words_.data()); }

  std::array<std::uint64_t, kMostLineWords> words_;  // Not cleared: only the first `size_` are ever read.
  std::size_t size_ = 0;
};

}  // namespace areal::port
