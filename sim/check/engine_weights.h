// Which weights each engine holds, as far as the trace proves it: the truth that labels, routes and tokens are held to.
//
// A rank's weights are what it said after its device fence (Applied) or after loading version 0; an engine's digest of
// a version is the 128-bit sum over its ranks. A rank that restarts holds nothing until it says so again.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/port/notes.h"
#include "sim/check/flat.h"
#include "sim/check/incarnations.h"
#include "sim/check/judge.h"

namespace areal::sim {

class EngineWeights {
 public:
  static constexpr std::array<KindId, 6> kKinds{port::ComputeDone::kKind, port::ApplyStarted::kKind,
                                                port::Applied::kKind,     port::WeightsState::kKind,
                                                Incarnations::kStarted,   Incarnations::kChanged};

  explicit EngineWeights(const SetupPtr& setup);

  void on_event(const port::TraceEvent& event);

  struct Rank {
    NodeId node;
    std::uint32_t place = 0;     // Inside its engine.
    bool dead = false;           // Confirmed, and not started again.
    bool loaded = false;         // It said what it holds: version 0 after loading, in state kLoading.
    bool restarted = false;      // A new incarnation since its last full set of weights.
    std::uint64_t applying = 0;  // seq of the ApplyStarted that is open; 0 if none is.
    std::uint64_t since = 0;     // seq of the last change of what is here.
    port::ServeState state = port::ServeState::kLoading;
    Version version = 0;
  };
  // All ranks of an engine held these bytes at the same version.
  struct Held {
    Epoch epoch = 0;  // 0: loaded, not received.
    Version version = 0;
    Attempt attempt = 0;
    std::uint64_t seq = 0;
    Digest128 sum;                    // Over its ranks.
    std::vector<Digest128> of_ranks;  // By place.
  };

  [[nodiscard]] std::uint32_t engines() const { return static_cast<std::uint32_t>(engines_.size()); }
  [[nodiscard]] bool knows(EngineId engine) const { return engine.value < engines_.size(); }
  // REQUIRES: knows(engine).
  [[nodiscard]] const std::vector<Rank>& ranks(EngineId engine) const { return engines_[engine.value].ranks; }
  [[nodiscard]] const std::vector<Held>& held(EngineId engine) const { return engines_[engine.value].held; }
  // Null if the node is no rank of an engine.
  [[nodiscard]] const Rank* rank_at(NodeId node) const;
  // Nothing if the engine never held `version`. The latest, if it did in several epochs.
  [[nodiscard]] const Held* find(EngineId engine, Version version) const;
  // Whether `digest` is of `version` as the engine held it in any epoch.
  [[nodiscard]] bool holds(EngineId engine, Version version, const Digest128& digest) const;
  // Whether `digest` is of `held`: the sum over ranks, or the weights of any one of them.
  [[nodiscard]] static bool matches(const Held& held, const Digest128& digest);
  // The version whose bytes `digest` are, if the engine ever held them.
  [[nodiscard]] std::optional<Version> version_of(EngineId engine, const Digest128& digest) const;

 private:
  struct Engine {
    std::vector<Rank> ranks;
    std::vector<Held> held;
    Held pending;  // Being collected: all ranks of one (epoch, version, attempt).
    std::vector<bool> have;
    Held loading;  // The same for version 0.
    std::vector<bool> loaded;
  };
  Rank* rank_of(NodeId node, Engine** engine);
  void forget(NodeId node, std::uint64_t seq, bool dead);
  void on_applied(const port::TraceEvent& event, const port::Applied& applied);
  void on_loaded(const port::TraceEvent& event, const Digest128& digest);
  static void collect(Engine& engine, Held& held, std::vector<bool>& have, std::uint32_t place,
                      const Digest128& digest);

  std::vector<Engine> engines_;
  struct Place {
    std::uint32_t engine = kNoRank;
    std::uint32_t place = 0;
  };
  std::vector<Place> places_;  // By node id.
  Incarnations incarnations_;
};

}  // namespace areal::sim
