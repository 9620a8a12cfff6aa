// INV-3: at publication every tensor of every engine is written, and the bytes equal what the trainer exported.
//
// Digests are 128-bit sums over live elements. Every engine receives each element once for each rank that keeps it, so
// that with equal engines: engines x (sum over one engine's ranks) = sum over all senders, modulo 2^128. What a sender
// exports is the sum of all that it is there to send, also where a delta moves only what changed: so it says what the
// engines must hold then.
#pragma once
#include "sim/check/flat.h"
#include "sim/check/judge.h"

namespace areal::sim {

class BytesJudge final : public JudgeOf<BytesJudge> {
 public:
  explicit BytesJudge(const SetupPtr& setup) : setup_(setup) {}
  [[nodiscard]] std::string_view name() const override { return "bytes"; }
  [[nodiscard]] std::span<const KindId> interest() const override;
  void on_event(const port::TraceEvent& event, Violations& out) override;

 private:
  struct Key {
    Epoch epoch = 0;
    Version version = 0;
    Attempt attempt = 0;
    bool operator==(const Key&) const = default;
  };
  struct Received {
    Key key;
    std::uint64_t seq = 0;
    std::uint64_t written = 0;
    std::uint64_t expected = 0;
    Digest128 digest;
  };
  struct EngineSum {
    bool complete = true;
    Digest128 sum;
    std::vector<NodeId> ranks;
  };
  void on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out);
  // Sums per engine of what its ranks applied at `key`; reports ranks that wrote less than they should.
  std::vector<EngineSum> sum_engines(const port::TraceEvent& event, const Key& key, Violations& out) const;
  // Which rank differs from the same place of an engine whose bytes are right.
  [[nodiscard]] NodeId odd_rank(const EngineSum& wrong, const EngineSum* right) const;
  [[nodiscard]] static Digest128 times(const Digest128& sum, std::size_t count);

  SetupPtr setup_;
  Flat<NodeId, Received> received_;
  Key exported_key_;
  DigestSum exported_;
  std::uint64_t exported_seq_ = 0;
};

}  // namespace areal::sim
