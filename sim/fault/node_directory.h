// The names of a cluster's nodes and slots, for what people write in scenarios.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/text.h"
#include "engine/port/notes.h"

namespace areal::sim {

struct NodeEntry {
  std::string name;                // "engine.0.rank.1"
  std::vector<std::string> slots;  // Protocol names by slot.
  port::Role role = port::Role::kGuard;
};

// By NodeId; entry 0 stands for "no node" and has no name.
using NodeDirectory = std::vector<NodeEntry>;

class NodeSet {
 public:
  NodeSet() = default;
  // All nodes that fit `pattern`; every node if it is empty. An error if none does; `line` is of the scenario.
  static Result<NodeSet> find(const NodeDirectory& directory, std::string_view pattern, int line);
  static NodeSet of_role(const NodeDirectory& directory, port::Role role);

  [[nodiscard]] bool contains(NodeId node) const { return node.value < member_.size() && member_[node.value]; }
  [[nodiscard]] std::span<const NodeId> nodes() const { return nodes_; }

 private:
  void add(NodeId node, std::size_t size);

  std::vector<NodeId> nodes_;  // Ascending.
  std::vector<bool> member_;
};

// "line 12: " and the sentence.
Error error_at(int line, const std::string& sentence);

}  // namespace areal::sim
