// One rollout rank of a small live model: staging for what lands, live weights that an update overwrites in place.
//
// A transfer lands in staging; apply() writes it over the live weights, tensor by tensor in plan order, so that an
// apply that ends early leaves a mixture of versions, as on a real device. A copyable value; not thread-safe.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/node/tiny_delta.h"
#include "engine/node/tiny_engine.h"

namespace areal::node {

// Where a rank keeps a name that is an alias of another tensor.
enum class AliasStorage : std::uint8_t {
  kShared,  // In the storage of its source.
  kCloned,  // In storage of its own, which only loading and full transfers fill.
};

class TinyReplica {
 public:
  struct Verified {
    std::uint64_t elements = 0;
    Digest128 digest;
  };
  struct Applied {
    std::uint64_t written = 0;  // Tensors all of whose elements were written.
    std::uint64_t total = 0;    // Tensors of the engine's metas that this rank holds, without aliases.
  };
  static constexpr std::size_t kAllTensors = std::numeric_limits<std::size_t>::max();

  // REQUIRES: engine and infer_rank are part of shape->world(). Holds version 0.
  TinyReplica(TinyShapePtr shape, std::uint32_t engine, std::uint32_t infer_rank,
              AliasStorage storage = AliasStorage::kShared);

  // Back to version 0 (the trainers' own), with nothing staged.
  void load();
  // Puts one sender's stream into staging, over what is there. False if the plan has no such sender, or another length.
  [[nodiscard]] bool land(std::uint32_t sender, std::span<const std::uint32_t> bits);
  // The same of one sender's updates, of all wire dtypes together.
  [[nodiscard]] bool land(std::uint32_t sender, const PackedUpdates& updates);
  void clear_staging();
  // Flips one staged bit, chosen by `pick`. False if nothing is staged.
  bool flip(std::uint64_t pick);
  // The sum over staging.
  [[nodiscard]] Verified verify() const;
  // Writes the first `at_most_tensors` staged tensors, or their staged updates, over the live weights. Staging stays.
  Applied apply(std::size_t at_most_tensors = kAllTensors);
  // Of all weights held, in their wire dtypes, under every name: an alias counts as a tensor of its own.
  [[nodiscard]] Digest128 digest() const;
  // Bits in the wire dtype, by local element.
  [[nodiscard]] std::span<const std::uint32_t> live() const { return live_; }
  [[nodiscard]] std::uint64_t elements() const { return live_.size(); }
  [[nodiscard]] std::uint32_t transfer_rank() const { return rank_; }

  // All that changes, as words; restore() refuses words of another shape and then leaves this unchanged.
  [[nodiscard]] std::vector<std::uint64_t> save() const;
  [[nodiscard]] bool restore(std::span<const std::uint64_t> words);

 private:
  struct Staged {
    std::uint32_t stream = 0;  // Index into TinyShape::streams.
    bool landed = false;
    bool is_delta = false;
    std::vector<std::uint32_t> bits{};
    std::vector<std::uint32_t> targets{};  // Of a delta: the local element of each of `bits`, by operation.
    std::vector<std::uint32_t> starts{};   // Of a delta: where the updates of each operation begin, and the end.
  };
  [[nodiscard]] const TinyHolding& holding() const;
  [[nodiscard]] Staged* staged_of(std::uint32_t sender);
  // Of a part under all of its names.
  [[nodiscard]] Digest128 part_digest(std::size_t index) const;
  void fill_clones();
  [[nodiscard]] bool take_updates(std::span<const std::uint64_t>& words, const TinyStream& stream, Staged& staged);
  // What one staged write says, into `live`; marks what is new.
  std::uint64_t write(const TinyWrite& write, const Staged& staged, std::vector<std::uint8_t>& is_new);

  TinyShapePtr shape_;
  std::uint32_t rank_ = 0;           // Transfer rank.
  std::vector<Staged> staging_;      // Ascending by sender.
  std::vector<std::uint32_t> live_;  // Bits in the wire dtype.
  AliasStorage storage_ = AliasStorage::kShared;
  std::vector<std::vector<std::uint32_t>> clones_;  // By alias; empty if aliases share their sources' storage.
  std::vector<Digest128> part_digests_;             // By part.
};

}  // namespace areal::node
