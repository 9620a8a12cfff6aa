// Lines of a trace on their way from the loop that reports them to the thread that writes them.
//
// Copying a line in is all that recording costs the loop. Lines lie as their canonical words, so that the digest hashes
// them where they are. One thread at a time uses a batch.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/port/trace_words.h"

namespace areal::record {

class TraceBatch {
 public:
  TraceBatch() : words_(std::make_unique_for_overwrite<std::uint64_t[]>(kWords)), end_(words_.get()) {}

  // REQUIRES of all of these: !is_full().
  void on_event(const port::TraceEvent& event) { end_ = port::write_words(event, end_); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) {
    end_ = port::write_words(node, slot, digest, end_);
  }
  void on_stream(std::uint32_t stream, std::string_view name) {
    end_ = port::write_words(stream, name, end_);
    names_.emplace_back(name);
  }
  void on_decision(const port::Decision& decision) { end_ = port::write_words(decision, end_); }

  [[nodiscard]] bool is_full() const {
    return static_cast<std::size_t>(words_.get() + kWords - end_) < port::kMostLineWords;
  }
  [[nodiscard]] bool is_empty() const { return end_ == words_.get(); }

  struct State {
    NodeId node;
    SlotId slot;
    Digest128 digest;
  };
  struct Stream {
    std::uint32_t stream = 0;
    std::string_view name;
  };
  // Calls `heard(line, words)` for each line in order; a line is a TraceEvent, a State, a Stream or a Decision.
  template <class Heard>
  void each_line(Heard&& heard) const {
    auto name = names_.begin();
    port::TraceEvent event;
    for (const std::uint64_t* in = words_.get(); in != end_;) {
      const std::span words(in, port::words_in_line(*in));
      in += words.size();
      switch (port::tag_of(words[0])) {
        case port::LineTag::kEvent:
          port::read_words(words.data(), event);
          heard(event, words);
          break;
        case port::LineTag::kState: {
          State state;
          port::read_words(words.data(), state.node, state.slot, state.digest);
          heard(state, words);
          break;
        }
        case port::LineTag::kStream: {
          Stream stream;
          port::read_words(words.data(), stream.stream);
          stream.name = *name++;
          heard(stream, words);
          break;
        }
        case port::LineTag::kDecision: {
          port::Decision decision;
          port::read_words(words.data(), decision);
          heard(decision, words);
          break;
        }
      }
    }
  }

  void clear() {
    end_ = words_.get();
    names_.clear();
    commits = false;
  }

  bool commits = false;  // Whether what is written so far is to be committed after this batch.

 private:
  static constexpr std::size_t kWords = 32'768;

  std::unique_ptr<std::uint64_t[]> words_;  // NOLINT(modernize-avoid-c-arrays): not cleared, each word is written first
  std::uint64_t* end_;
  std::vector<std::string> names_;  // Of the streams among the lines, in order.
};

}  // namespace areal::record
