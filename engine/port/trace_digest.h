// The digest of a run: one chain over everything a trace sink hears, in order.
//
// Each line becomes its canonical words; chain = chain_digest(chain, hash_words(words)). Two runs
// are equal if their chains are; the first line at which the chains part is where the runs part. Not thread-safe.
#pragma once
#include "engine/base/digest.h"
#include "engine/port/trace_words.h"

namespace areal::port {

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
