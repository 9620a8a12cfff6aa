// What was asked of ports and has not ended: from it a harness knows how long to wait.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/ids.h"
#include "engine/proto/effect.h"
#include "engine/proto/input.h"

namespace areal::test {

// What `node` will be told, by the kind and id of the input.
struct OpenAsk {
  NodeId node{};
  std::optional<SlotId> slot{};  // None: whichever it is.
  KindId kind = 0;
  std::uint64_t id = 0;
  bool needs_others = false;  // Perhaps it never ends: others must join, post or live.
};

// A value. Not thread-safe.
class OpenAsks {
 public:
  void asked(NodeId node, SlotId slot, const proto::Effect& effect);
  void told(NodeId node, SlotId slot, const proto::Input& input);
  // The process is dead; nobody is told any more.
  void ended(NodeId node);
  // Also without having been asked for: the exit of a process that `starter` started.
  void expect_exit(NodeId starter, NodeId node);

  [[nodiscard]] bool expects_exit(NodeId node) const;
  [[nodiscard]] bool is_empty() const { return asks_.empty(); }
  [[nodiscard]] bool all_need_others() const;

 private:
  void forget(NodeId node, SlotId slot, KindId kind, std::uint64_t id);

  std::vector<OpenAsk> asks_;
};

}  // namespace areal::test
