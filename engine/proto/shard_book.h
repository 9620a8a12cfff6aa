// Looks up which box of a parameter a rank holds.
//
// Immutable once built; safe to share between threads.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/proto/shard_meta.h"

namespace areal::proto {

class ShardBook {
 public:
  // The metas outlive the book.
  explicit ShardBook(const MetaSet& metas);

  struct Held {
    ShardMeta shard;
    bool again = false;  // The rank holds more than one shard of this parameter; `shard` is the first.
  };
  // Nothing if the rank holds nothing of it. REQUIRES: parameter < parameters().
  [[nodiscard]] std::optional<Held> find(std::uint32_t parameter, std::uint32_t global_rank) const;
  // The parameter's index by its name's; nothing if there is no such parameter.
  [[nodiscard]] std::optional<std::uint32_t> parameter_of(std::uint32_t name) const;
  [[nodiscard]] std::uint32_t parameters() const { return static_cast<std::uint32_t>(metas_->parameters.size()); }
  [[nodiscard]] std::uint32_t name_index(std::uint32_t parameter) const { return metas_->parameters[parameter].name; }
  [[nodiscard]] const std::string& name(std::uint32_t parameter) const { return (*metas_->names)[name_index(parameter)]; }

 private:
  struct Entry {
    std::uint32_t global_rank = 0;
    std::uint32_t shard = 0;
  };
  const MetaSet* metas_;
  std::vector<std::uint32_t> by_name_;  // Index of the parameter, plus one; 0 is none.
  std::vector<Entry> entries_;          // Grouped by parameter, ascending by rank, then by shard.
  std::vector<std::uint32_t> start_;    // Into entries_, one more than parameters.
};

}  // namespace areal::proto
