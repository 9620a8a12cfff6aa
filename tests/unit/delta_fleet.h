// Trainers and two sets of engines: one is fed by deltas whenever that is possible, one by full transfers always.
//
// What a room does with votes, groups and messages happens here at once, so that only the arithmetic is left. Not
// thread-safe.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/node/tiny_replica.h"
#include "engine/node/tiny_trainer.h"
#include "engine/proto/sharding.h"

namespace areal::test {

struct FleetLayout {
  std::string_view model = "tiny";
  config::ParallelStrategy train{};
  config::ParallelStrategy infer{};
  std::uint32_t engines = 1;
  std::uint64_t window_bytes = 512'000'000;
};

class DeltaFleet {
 public:
  // What one pass over all windows found, over all ranks.
  struct Found {
    bool full = false;
    bool all_known = true;          // Every rank has watermarks.
    std::uint64_t contributed = 0;  // Parameters, over all ranks.
    std::uint64_t changed = 0;      // Elements in masks, over all ranks.
    [[nodiscard]] bool may_be_delta() const { return all_known && !full; }
  };

  explicit DeltaFleet(const FleetLayout& layout) {
    const Result<config::ModelSpec> full = config::model_by_name(layout.model);
    EXPECT_TRUE(full);
    const Result<proto::MetaSet> train = proto::training_metas(*full, layout.train);
    EXPECT_TRUE(train);
    plans =
        std::make_shared<const proto::ReconstructPlans>(proto::reconstruct_plans(*full, *train, layout.window_bytes));
    node::TinyRequest request{.train = layout.train, .infer = layout.infer, .engines = layout.engines};
    request.reconstruct = plans.get();
    const Result<node::TinyShapePtr> made = node::make_tiny_shape(*full, request, proto::RenamePolicy());
    EXPECT_TRUE(made) << (made ? "" : made.error().detail);
    shape = *made;
    const proto::PlanWorld& world = shape->world();
    for (std::uint32_t rank = 0; rank < world.train_world; ++rank) trainers.emplace_back(shape, rank);
    for (std::uint32_t rank = 0; rank < world.infer_world; ++rank) {
      fed_by_deltas.emplace_back(shape, rank / world.instance(), rank % world.instance());
    }
    fed_in_full = fed_by_deltas;
    synced.resize(trainers.size());
    rates.assign(trainers.size(), std::nullopt);
  }

  // Steps of all ranks, which make the next version.
  void step(std::uint64_t seed, std::uint64_t steps = 1) {
    const double rate = shape->optimizer.learning_rate;
    for (node::TinyTrainer& trainer : trainers) trainer.advance(trainer.version() + 1, seed, steps, rate);
    if (steps > 0) rates.assign(trainers.size(), rate);
  }

  [[nodiscard]] std::size_t windows() const { return plans->ranks.front().windows.size(); }
  // The ranks that hold copies of what `rank` holds of this kind, itself among them.
  [[nodiscard]] std::vector<std::uint32_t> copies_of(std::uint32_t rank, std::size_t kind) const {
    std::vector<std::uint32_t> copies;
    for (std::uint32_t other = 0; other < trainers.size(); ++other) {
      const bool same = plans->ranks[other].places[kind].group == plans->ranks[rank].places[kind].group;
      if (same) copies.push_back(other);
    }
    return copies;
  }

  // Captures on all ranks, then goes through all windows. `left_out` has no part in any sum; `gives_up` fails to invert
  // window 0.
  Found find(std::optional<std::uint32_t> left_out = {}, std::optional<std::uint32_t> gives_up = {}) {
    Found found;
    std::vector<std::uint8_t> force(trainers.size(), 0);
    for (node::TinyTrainer& trainer : trainers) found.all_known = trainer.capture() > 0 && found.all_known;
    for (std::uint32_t window = 0; window < windows(); ++window) {
      for (std::uint32_t rank = 0; rank < trainers.size(); ++rank) {
        if (gives_up == rank && window == 0) {
          trainers[rank].delta().give_up(window);
          force[rank] = 1;
          continue;
        }
        const node::TinyDelta::Inverted inverted = trainers[rank].invert(window, rates[rank], force[rank] != 0);
        force[rank] = inverted.force ? 1 : 0;
        found.contributed += inverted.contributed;
      }
      reduce(window, left_out, force);
      for (std::uint32_t rank = 0; rank < trainers.size(); ++rank) {
        const node::TinyDelta::Compared compared = trainers[rank].compare(window, force[rank] != 0);
        force[rank] = compared.full ? 1 : 0;
        found.full = found.full || compared.full;
        found.changed += compared.changed;
      }
    }
    return found;
  }

  // Moves the present weights to both sets of engines, to the first as a delta if `delta`.
  void transfer(bool delta) {
    for (const node::TinyTrainer& trainer : trainers) {
      const std::uint32_t sender = trainer.transfer_rank();
      const node::Packed whole = trainer.pack();
      for (const node::PackedStream& stream : whole.streams) {
        EXPECT_TRUE(fed_in_full[stream.receiver].land(sender, stream.bits));
        if (delta) continue;
        EXPECT_TRUE(fed_by_deltas[stream.receiver].land(sender, stream.bits));
      }
      if (!delta) continue;
      const node::Packed updates = trainer.pack_delta();
      EXPECT_EQ(updates.digest, whole.digest) << "both say what engines should hold then";
      for (const node::PackedStream& stream : updates.streams) {
        EXPECT_TRUE(fed_by_deltas[stream.receiver].land(sender, stream.updates));
      }
    }
    for (std::vector<node::TinyReplica>* engines : {&fed_in_full, &fed_by_deltas}) {
      for (node::TinyReplica& engine : *engines) {
        const node::TinyReplica::Applied applied = engine.apply();
        EXPECT_EQ(applied.written, applied.total);
        engine.clear_staging();
      }
    }
  }
  void commit() {
    for (std::uint32_t rank = 0; rank < trainers.size(); ++rank) {
      trainers[rank].delta().mark_synced();
      synced[rank].assign(trainers[rank].wire().begin(), trainers[rank].wire().end());
    }
  }
  // A whole update; returns what was found.
  Found update() {
    const Found found = find();
    EXPECT_TRUE(!found.may_be_delta() || missed() == 0) << missed();
    transfer(found.may_be_delta());
    commit();
    return found;
  }

  // Elements that differ from what was synced last and are in no mask, over all ranks.
  [[nodiscard]] std::uint64_t missed() const {
    std::uint64_t count = 0;
    for (std::uint32_t rank = 0; rank < trainers.size(); ++rank) {
      for (std::size_t i = 0; i < synced[rank].size(); ++i) {
        if (trainers[rank].wire()[i] != synced[rank][i] && trainers[rank].delta().mask()[i] == 0) ++count;
      }
    }
    return count;
  }
  // Elements whose bits differ between the two sets of engines.
  [[nodiscard]] std::uint64_t wrong() const {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < fed_in_full.size(); ++i) {
      for (std::size_t k = 0; k < fed_in_full[i].live().size(); ++k) {
        if (fed_in_full[i].live()[k] != fed_by_deltas[i].live()[k]) ++count;
      }
      if (fed_in_full[i].digest() != fed_by_deltas[i].digest()) ++count;
    }
    return count;
  }
  // Elements of parameters that are always sent whole, over all ranks.
  [[nodiscard]] std::uint64_t always_sent() const {
    std::uint64_t count = 0;
    for (const node::TinyHolding& holding : shape->trainers) {
      for (const node::TinyPart& part : holding.parts) count += is_router(part) ? part.count : 0;
    }
    return count;
  }
  [[nodiscard]] bool is_router(const node::TinyPart& part) const {
    return shape->model.name_of(shape->model.parameters[part.tensor]).ends_with(".mlp.gate.weight");
  }
  // Changes one bit of one fp32 weight of a rank behind its optimizer's back.
  void edit(std::uint32_t rank, std::uint32_t element, std::uint32_t bit) {
    constexpr std::size_t kWordsBefore = 3;
    const node::TinyDelta known = trainers[rank].delta();
    std::vector<std::uint64_t> words = trainers[rank].save();
    words[kWordsBefore + element / 2] ^= std::uint64_t{1} << (bit + (element % 2) * 32);
    EXPECT_TRUE(trainers[rank].restore(words));
    trainers[rank].delta() = known;
  }

  std::shared_ptr<const proto::ReconstructPlans> plans;
  node::TinyShapePtr shape;
  std::vector<node::TinyTrainer> trainers;
  std::vector<node::TinyReplica> fed_by_deltas;
  std::vector<node::TinyReplica> fed_in_full;
  std::vector<std::vector<std::uint32_t>> synced;  // Wire bits by training rank, as last committed.
  std::vector<std::optional<double>> rates;        // That each rank's last step is recorded to have used.

 private:
  void reduce(std::uint32_t window, std::optional<std::uint32_t> left_out, std::vector<std::uint8_t>& force) {
    const std::vector<std::uint8_t> mine = force;
    for (std::size_t kind = 0; kind < proto::kReplicaKinds; ++kind) {
      for (std::uint32_t rank = 0; rank < trainers.size(); ++rank) {
        const std::vector<std::uint32_t> copies = copies_of(rank, kind);
        const bool shares = plans->ranks[rank].windows[window].shares[kind].parameters > 0;
        if (copies.size() > 1 && shares) {
          for (const std::uint32_t other : copies) force[rank] |= mine[other];
        }
        if (copies.front() != rank || copies.size() == 1) continue;
        std::vector<node::TinyDelta*> members;
        for (const std::uint32_t other : copies) {
          if (other != left_out) members.push_back(&trainers[other].delta());
        }
        node::TinyDelta::reduce(members, window, static_cast<std::uint8_t>(kind));
      }
    }
  }
};

}  // namespace areal::test
