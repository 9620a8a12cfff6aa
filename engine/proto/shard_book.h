// Looks up which box of a parameter a rank holds.
//
// Immutable once built; safe to share between threads.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/proto/parameter_grid.h"
#include "engine/proto/shard_meta.h"

namespace areal::proto {

class ShardBook {
 public:
  // What it is made from outlives the book. From metas it makes an index of all shards; from grids it computes them.
  explicit ShardBook(const MetaSet& metas);
  explicit ShardBook(const GridSet& grids);

  struct Held {
    ShardMeta shard;
    bool again = false;  // The rank holds more than one shard of this parameter; `shard` is the first.
  };
  // Nothing if the rank holds nothing of it. REQUIRES: parameter < parameters().
  [[nodiscard]] std::optional<Held> find(std::uint32_t parameter, std::uint32_t global_rank) const;
  // The parameter's index by its name's; nothing if there is no such parameter.
  [[nodiscard]] std::optional<std::uint32_t> parameter_of(std::uint32_t name) const;
  [[nodiscard]] std::uint32_t parameters() const { return static_cast<std::uint32_t>(name_indices_.size()); }
  [[nodiscard]] std::uint32_t name_index(std::uint32_t parameter) const { return name_indices_[parameter]; }
  [[nodiscard]] const std::string& name(std::uint32_t parameter) const { return (*names_)[name_indices_[parameter]]; }

 private:
  struct Entry {
    std::uint32_t global_rank = 0;
    std::uint32_t shard = 0;
  };
  void add_name(std::uint32_t name);

  const MetaSet* metas_ = nullptr;  // Either of them.
  const GridSet* grids_ = nullptr;
  const NameTable* names_;
  std::vector<std::uint32_t> name_indices_;  // By parameter.
  std::vector<std::uint32_t> by_name_;       // Index of the parameter, plus one; 0 is none.
  std::vector<Entry> entries_;               // Grouped by parameter, ascending by rank, then by shard.
  std::vector<std::uint32_t> start_;         // Into entries_, one more than parameters.
};

}  // namespace areal::proto
