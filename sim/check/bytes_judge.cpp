// Compares the bytes of engines and trainer at publication.
#include "sim/check/bytes_judge.h"

namespace areal::sim {

std::span<const KindId> BytesJudge::interest() const {
  static constexpr std::array<KindId, 3> kWanted{port::Exported::kKind, port::Applied::kKind,
                                                 port::VersionPublished::kKind};
  return kWanted;
}

void BytesJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  if (record.kind == port::Exported::kKind) {
    const auto exported = from_record<port::Exported>(record);
    const Key key{exported.epoch, exported.version, exported.attempt};
    if (!(key == exported_key_)) {
      exported_key_ = key;
      exported_ = {};
    }
    exported_.add(exported.digest);
    exported_seq_ = event.seq;
  } else if (record.kind == port::Applied::kKind) {
    const auto applied = from_record<port::Applied>(record);
    received_[event.node] = {{applied.epoch, applied.version, applied.attempt},
                             event.seq,
                             applied.written,
                             applied.expected,
                             applied.digest};
  } else {
    on_published(event, from_record<port::VersionPublished>(record), out);
  }
}

Digest128 BytesJudge::times(const Digest128& sum, std::size_t count) {
  DigestSum total;
  for (std::size_t i = 0; i < count; ++i) total.add(sum);
  return total.total;
}

std::vector<BytesJudge::EngineSum> BytesJudge::sum_engines(const port::TraceEvent& event, const Key& key,
                                                           Violations& out) const {
  std::vector<EngineSum> engines(setup_->engines());
  for (std::uint32_t e = 0; e < engines.size(); ++e) {
    EngineSum& engine = engines[e];
    DigestSum sum;
    engine.ranks = setup_->ranks_of(EngineId{e});
    for (const NodeId node : engine.ranks) {
      const Received* received = received_.find(node);
      if (received == nullptr || !(received->key == key)) {  // Who did not apply is for the judge of INV-2.
        engine.complete = false;
        continue;
      }
      sum.add(received->digest);
      if (received->written == received->expected) continue;
      Violation found = violation_at(InvariantId::kInv3, event,
                                     say(setup_->name_of(node), " wrote ", received->written, " of ",
                                         received->expected, " tensors of version ", key.version));
      found.node = node;
      found.version = key.version;
      found.related.push_back(received->seq);
      out.add(std::move(found));
    }
    engine.sum = sum.total;
  }
  return engines;
}

NodeId BytesJudge::odd_rank(const EngineSum& wrong, const EngineSum* right) const {
  if (right == nullptr || right->ranks.size() != wrong.ranks.size()) return wrong.ranks.front();
  for (std::size_t i = 0; i < wrong.ranks.size(); ++i) {
    if (received_.find(wrong.ranks[i])->digest != received_.find(right->ranks[i])->digest) return wrong.ranks[i];
  }
  return wrong.ranks.front();
}

void BytesJudge::on_published(const port::TraceEvent& event, const port::VersionPublished& published, Violations& out) {
  const Key key{published.epoch, published.version, published.attempt};
  const auto engines = sum_engines(event, key, out);
  const bool exported = exported_key_ == key;

  const EngineSum* right = nullptr;  // An engine that is known to hold the exported bytes, or else the first whole one.
  bool proven = false;
  for (const EngineSum& engine : engines) {
    if (!engine.complete || engine.ranks.empty()) continue;
    const bool equal = exported && times(engine.sum, engines.size()) == exported_.total;
    if (right == nullptr || (equal && !proven)) right = &engine;
    proven = proven || equal;
  }
  if (right == nullptr) return;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const EngineSum& engine = engines[e];
    if (!engine.complete || engine.ranks.empty()) continue;
    if (engine.sum == right->sum && (proven || !exported)) continue;
    const NodeId odd = odd_rank(engine, &engine == right ? nullptr : right);
    const std::string other = exported
                                  ? say("the trainer exported ", exported_.total, " for ", engines.size(), " engines")
                                  : say("another engine holds ", right->sum);
    Violation found = violation_at(InvariantId::kInv3, event,
                                   say("engine ", e, " holds bytes ", engine.sum, " as version ", key.version, ", but ",
                                       other, "; ", setup_->name_of(odd), " is where they differ"));
    found.node = odd;
    found.version = key.version;
    found.related.push_back(received_.find(odd)->seq);
    if (exported) found.related.push_back(exported_seq_);
    out.add(std::move(found));
  }
}

}  // namespace areal::sim
