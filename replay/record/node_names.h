// Names of nodes and their protocols, for rows and lines that people read.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "replay/record/run_info.h"

namespace areal::record {

class NodeNames {
 public:
  NodeNames() = default;
  explicit NodeNames(std::span<const NodeRow> nodes) : nodes_(nodes.begin(), nodes.end()) {
    std::ranges::stable_sort(nodes_, {}, &NodeRow::id);
  }

  // "-" for no node, "node7" for one that was not named.
  [[nodiscard]] std::string name(NodeId id) const {
    if (id.value == 0) return "-";
    const NodeRow* row = find(id);
    return row != nullptr ? row->name : "node" + std::to_string(id.value);
  }
  // "e3/weight_receiver".
  [[nodiscard]] std::string name(NodeId id, SlotId slot) const {
    const NodeRow* row = find(id);
    const bool known = row != nullptr && slot.value < row->slots.size();
    return name(id) + "/" + (known ? row->slots[slot.value] : std::to_string(slot.value));
  }

 private:
  [[nodiscard]] const NodeRow* find(NodeId id) const {
    const auto place = std::ranges::lower_bound(nodes_, id, {}, &NodeRow::id);
    return place != nodes_.end() && place->id == id ? &*place : nullptr;
  }

  std::vector<NodeRow> nodes_;
};

}  // namespace areal::record
