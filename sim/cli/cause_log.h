// What happened, as far as it is needed to say what led to a violation.
//
// Every event of a run is kept in the words that it uses, a third of what it takes in memory otherwise, in pieces that
// never move: listening costs a run little. Events beyond the first two millions are not kept. Not thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/port/trace_sink.h"

namespace areal::cli {

class CauseLog final : public port::EventSink {
 public:
  void on_event(const port::TraceEvent& event) override;

  struct Cause {
    std::uint64_t seq = 0;
    NodeId node{};
    std::uint32_t rule = 0;
    Record record{};
    Record body{};
  };
  // From `seq` back to where it began, at most `most` events.
  [[nodiscard]] std::vector<Cause> chain(std::uint64_t seq, std::size_t most) const;

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;  // Words.
  using Piece = std::unique_ptr<std::uint64_t[]>;              // NOLINT(modernize-avoid-c-arrays): not set to 0.

  [[nodiscard]] const std::uint64_t* words_of(std::uint64_t seq) const;

  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> places_;  // places_[i] is that of event i + 1, counted in words.
  std::size_t used_ = kPiece;          // Of the last piece.
};

}  // namespace areal::cli
