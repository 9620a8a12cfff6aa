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

  // Gives all lines to `sink`, in order.
  template <class Sink>
  void give_to(Sink& sink) const {
    auto name = names_.begin();
    port::TraceEvent event;
    for (const std::uint64_t* in = words_.get(); in != end_;) {
      switch (static_cast<port::LineTag>(*in)) {
        case port::LineTag::kEvent:
          in = port::read_words(in, event);
          sink.on_event(event);
          break;
        case port::LineTag::kState: {
          NodeId node;
          SlotId slot;
          Digest128 digest;
          in = port::read_words(in, node, slot, digest);
          sink.on_state(node, slot, digest);
          break;
        }
        case port::LineTag::kStream: {
          std::uint32_t stream = 0;
          in = port::read_words(in, stream);
          sink.on_stream(stream, *name++);
          break;
        }
        case port::LineTag::kDecision: {
          port::Decision decision;
          in = port::read_words(in, decision);
          sink.on_decision(decision);
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
