// Finds cycles of waits and puts a stuck run into words.
#include "sim/check/stuck.h"

#include <algorithm>

namespace areal::sim {
namespace {

// Edges that can be part of a cycle, by waiting node.
std::vector<WaitEdge> sorted_edges(std::span<const WaitEdge> edges) {
  std::vector<WaitEdge> sorted;
  const auto before = [](const WaitEdge& a, const WaitEdge& b) {
    return a.from != b.from ? a.from < b.from : a.on < b.on;
  };
  for (const WaitEdge& edge : edges) {
    if (edge.on == NodeId{} || edge.from == NodeId{} || edge.on == edge.from) continue;
    sorted.insert(std::ranges::upper_bound(sorted, edge, before), edge);
  }
  return sorted;
}

std::size_t first_of(const std::vector<WaitEdge>& edges, NodeId node) {
  return static_cast<std::size_t>(std::ranges::lower_bound(edges, node, {}, &WaitEdge::from) - edges.begin());
}

}  // namespace

std::vector<WaitEdge> find_cycle(std::span<const WaitEdge> edges) {
  const std::vector<WaitEdge> sorted = sorted_edges(edges);
  std::vector<NodeId> over;  // Nodes from which no cycle is reached, sorted.
  for (const WaitEdge& start : sorted) {
    std::vector<std::size_t> path;  // Edges taken.
    std::vector<NodeId> on_path{start.from};
    std::vector<std::size_t> next{first_of(sorted, start.from)};
    while (!on_path.empty()) {
      const NodeId node = on_path.back();
      const std::size_t i = next.back();
      if (std::ranges::binary_search(over, node) || i >= sorted.size() || sorted[i].from != node) {
        const auto place = std::ranges::lower_bound(over, node);
        if (place == over.end() || *place != node) over.insert(place, node);
        on_path.pop_back();
        next.pop_back();
        if (!path.empty()) path.pop_back();
        continue;
      }
      ++next.back();
      const auto back = std::ranges::find(on_path, sorted[i].on);
      path.push_back(i);
      if (back == on_path.end()) {
        on_path.push_back(sorted[i].on);
        next.push_back(first_of(sorted, sorted[i].on));
        continue;
      }
      std::vector<WaitEdge> cycle;
      for (auto edge = path.begin() + (back - on_path.begin()); edge != path.end(); ++edge)
        cycle.push_back(sorted[*edge]);
      std::ranges::rotate(cycle, std::ranges::min_element(cycle, {}, &WaitEdge::from));
      return cycle;
    }
  }
  return {};
}

Violation make_stuck_violation(std::span<const WaitEdge> edges, const JudgeSetup& setup, const StuckAt& where) {
  Violation found;
  found.invariant = InvariantId::kInv7;
  found.seq = where.seq;
  found.at = where.at;
  found.step = where.step;
  found.related.push_back(where.seq);
  const auto words = [&](const WaitEdge& edge) {
    const std::string on = edge.on != NodeId{} ? " from " + setup.name_of(edge.on) : std::string();
    return say(setup.name_of(edge.from), " waits for ", edge.what, on);
  };
  const std::vector<WaitEdge> cycle = find_cycle(edges);
  if (!cycle.empty()) {
    found.level = InvariantClass::kSafety;
    found.node = cycle.front().from;
    found.message = "a cycle of waits:";
    for (const WaitEdge& edge : cycle) found.message += (&edge == cycle.data() ? " " : ", ") + words(edge);
    return found;
  }
  found.level = InvariantClass::kLiveness;
  for (const WaitEdge& edge : edges) {
    const bool waits_too = std::ranges::any_of(edges, [&](const WaitEdge& other) { return other.from == edge.on; });
    if (edge.on != NodeId{} && !waits_too) {
      found.node = edge.on;
      break;
    }
  }
  if (found.node == NodeId{} && !edges.empty()) found.node = edges.front().from;
  found.message = edges.empty() ? "nothing happens any more, and nobody says what it waits for" : "no progress:";
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < edges.size() && i < kShown; ++i) found.message += (i == 0 ? " " : ", ") + words(edges[i]);
  if (edges.size() > kShown) found.message += say(", and ", edges.size() - kShown, " more waits");
  return found;
}

}  // namespace areal::sim
