// The canonical words of the lines of a trace: what digests hash, and what a batch of lines is carried as.
//
// The first word of a line says what kind of line it is, of which kinds and sizes its records are, and so how long it
// is. Two lines are equal if their words are, and lines behind each other are taken apart in one way only.
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
inline constexpr std::size_t kMostLineWords = 8 + 2 * kMaxRecordWords;

// Write one line to `out` and give the end of it. REQUIRES: there is room for kMostLineWords. A stream's name becomes
// the words of its hash.
std::uint64_t* write_words(const TraceEvent& event, std::uint64_t* out);
std::uint64_t* write_words(NodeId node, SlotId slot, const Digest128& state, std::uint64_t* out);
std::uint64_t* write_words(std::uint32_t stream, std::string_view name, std::uint64_t* out);
std::uint64_t* write_words(const Decision& decision, std::uint64_t* out);

// Read what write_words() wrote. REQUIRES: a line of that kind begins at `in`.
void read_words(const std::uint64_t* in, TraceEvent& event);
void read_words(const std::uint64_t* in, NodeId& node, SlotId& slot, Digest128& state);
void read_words(const std::uint64_t* in, std::uint32_t& stream);
void read_words(const std::uint64_t* in, Decision& decision);

LineTag tag_of(std::uint64_t first_word);
std::size_t words_in_line(std::uint64_t first_word);

// The words of one line. Only the first size_ words are set.
class TraceWords {
 public:
  // NOLINTBEGIN(cppcoreguidelines-pro-type-member-init)
  explicit TraceWords(const TraceEvent& event) { end_at(write_words(event, words_.data())); }
  TraceWords(NodeId node, SlotId slot, const Digest128& state) {
    end_at(write_words(node, slot, state, words_.data()));
  }
  TraceWords(std::uint32_t stream, std::string_view name) { end_at(write_words(stream, name, words_.data())); }
  explicit TraceWords(const Decision& decision) { end_at(write_words(decision, words_.data())); }
  // NOLINTEND(cppcoreguidelines-pro-type-member-init)

  [[nodiscard]] std::span<const std::uint64_t> view() const { return {words_.data(), size_}; }

 private:
  void end_at(const std::uint64_t* end) { size_ = static_cast<std::size_t>(end - words_.data()); }

  std::array<std::uint64_t, kMostLineWords> words_;  // Not cleared: only the first `size_` are ever read.
  std::size_t size_ = 0;
};

}  // namespace areal::port
