// Collects the operations of a plan, parameter by parameter, and gives equal boxes one number.
//
// Not thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/proto/transfer_plan.h"

namespace areal::proto {

// Gives equal boxes one number: open addressing over a power of two of places.
class RegionTable {
 public:
  explicit RegionTable(std::vector<Region>& regions) : regions_(regions), places_(1024, kEmpty) {}

  std::uint32_t intern(const Region& region) {
    std::size_t place = hash(region) & (places_.size() - 1);
    while (places_[place] != kEmpty) {
      if (regions_[places_[place]] == region) return places_[place];
      place = (place + 1) & (places_.size() - 1);
    }
    const auto index = static_cast<std::uint32_t>(regions_.size());
    places_[place] = index;
    regions_.push_back(region);
    if (regions_.size() * 2 > places_.size()) grow();
    return index;
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;

  static std::size_t hash(const Region& region) {
    std::array<std::uint64_t, 5> words{};
    for (std::size_t i = 0; i < kMaxTensorRank; ++i) {
      words[i] = region.send_offset[i] | (std::uint64_t{region.recv_offset[i]} << 32);
    }
    words[3] = region.extent.extent[0] | (std::uint64_t{region.extent.extent[1]} << 32);
    words[4] = region.extent.extent[2] | (std::uint64_t{region.extent.rank} << 32);
    return hash_words(words).low;
  }

  void grow() {
    std::vector<std::uint32_t> larger(places_.size() * 2, kEmpty);
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      std::size_t place = hash(regions_[i]) & (larger.size() - 1);
      while (larger[place] != kEmpty) place = (place + 1) & (larger.size() - 1);
      larger[place] = i;
    }
    places_ = std::move(larger);
  }

  std::vector<Region>& regions_;
  std::vector<std::uint32_t> places_;
};

class OperationWriter {
 public:
  // Operations that are added from now on are of this tensor. Tensors come ascending by the engine's name.
  void begin(const PlanTensor& tensor) { list_.tensors.push_back(tensor); }

  // REQUIRES: begin() was called.
  void add(std::uint32_t send, std::uint32_t recv, const Region& region) {
    PlanOp op;
    op.tensor = static_cast<std::uint32_t>(list_.tensors.size() - 1);
    op.region = table_.intern(region);
    op.send = static_cast<TransferRank>(send);
    op.recv = static_cast<TransferRank>(recv);
    op.wire = list_.tensors.back().wire;
    op.storage = list_.tensors.back().storage;
    op.elements = region.extent.elements();
    list_.ops.push_back(op);
  }

  OperationList take() { return std::move(list_); }

 private:
  OperationList list_;
  RegionTable table_{list_.regions};
};

}  // namespace areal::proto
