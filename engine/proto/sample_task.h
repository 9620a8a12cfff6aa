// What the rollout pool knows of one sample, one sample group and the training batch that is wanted.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/dense.h"
#include "engine/base/digest.h"
#include "engine/base/fields.h"
#include "engine/base/ids.h"

namespace areal::proto {

// Labels and digest of tokens, kept segment by segment.
struct TokenRecord {
  std::uint64_t tokens = 0;
  Version oldest = 0;  // Label; meaningless without tokens.
  Version newest = 0;
  Digest128 digest;  // Chain of (label, tokens, digest of the weights), in order.
  AREAL_FIELDS(tokens, oldest, newest, digest)

  void add_segment(Version label, std::uint64_t count, const Digest128& weights) {
    const std::array<std::uint64_t, 4> words{label, count, weights.high, weights.low};
    add({count, label, label, hash_words(words)});
  }
  void add(const TokenRecord& later) {
    if (later.tokens == 0) return;
    oldest = tokens == 0 ? later.oldest : std::min(oldest, later.oldest);
    newest = tokens == 0 ? later.newest : std::max(newest, later.newest);
    tokens += later.tokens;
    digest = chain_digest(digest, later.digest);
  }
};

// kHeld: must be routed, but the pool is paused or no engine could take it just now.
enum class SamplePhase : std::uint8_t { kHeld, kRouting, kGenerating, kFinished };
constexpr std::array<std::string_view, 4> enum_names(SamplePhase /*tag*/) {
  return {"held", "routing", "generating", "finished"};
}

struct SampleTask {
  SamplePhase phase = SamplePhase::kHeld;
  SampleGroupId group;
  EngineId engine;     // Of the request under way.
  Version pinned = 0;  // Of the request under way.
  TokenRecord record;
  AREAL_FIELDS(phase, group, engine, pinned, record)
};

enum class GroupPhase : std::uint8_t { kSampling, kScoring, kStoring, kReady };
constexpr std::array<std::string_view, 4> enum_names(GroupPhase /*tag*/) {
  return {"sampling", "scoring", "storing", "ready"};
}

struct SampleGroup {
  GroupPhase phase = GroupPhase::kSampling;
  std::uint32_t unfinished = 0;  // Samples.
  TokenRecord record;            // Of all samples, in their order; from kScoring on.
  AREAL_FIELDS(phase, unfinished, record)
};

// The batch that the training loop asked for last.
struct WantedBatch {
  TrainBatchId batch;        // 0: none was asked for.
  Epoch training_epoch = 0;  // That it was last asked for under.
  bool taken = false;        // Its groups were taken.
  std::uint32_t groups = 0;
  std::uint32_t unassigned = 0;  // Shards that no train rank has confirmed yet.
  Digest128 digest;
  Dense<ShardId> shards;  // In the order in which they were taken.
  AREAL_FIELDS(batch, training_epoch, taken, groups, unassigned, digest, shards)
};

}  // namespace areal::proto
