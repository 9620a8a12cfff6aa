#include "sim/fault/node_directory.h"

namespace areal::sim {

void NodeSet::add(NodeId node, std::size_t size) {
  member_.resize(size);
  member_[node.value] = true;
  nodes_.push_back(node);
}

Result<NodeSet> NodeSet::find(const NodeDirectory& directory, std::string_view pattern, int line) {
  NodeSet set;
  std::vector<std::string_view> names;
  for (std::uint64_t i = 1; i < directory.size(); ++i) {
    names.emplace_back(directory[i].name);
    if (pattern.empty() || fits_pattern(pattern, directory[i].name)) set.add({i}, directory.size());
  }
  if (!set.nodes_.empty()) return set;
  return error_at(line, "no node is called '" + std::string(pattern) + "'" + did_you_mean(pattern, names));
}

NodeSet NodeSet::of_role(const NodeDirectory& directory, port::Role role) {
  NodeSet set;
  for (std::uint64_t i = 1; i < directory.size(); ++i) {
    if (directory[i].role == role) set.add({i}, directory.size());
  }
  return set;
}

Error error_at(int line, const std::string& sentence) {
  return {.code = Errc::kInvalid, .detail = "line " + std::to_string(line) + ": " + sentence};
}

}  // namespace areal::sim
