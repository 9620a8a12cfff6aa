// A protocol that asks for nothing; rooms of port contracts host two of them in each node.
#pragma once
#include <string_view>
#include <vector>

#include "engine/node/protocol_box.h"
#include "engine/proto/erase.h"

namespace areal::test {

// Remembers what it is told.
class Listener {
 public:
  static constexpr std::string_view kName = "listener";
  void step(const proto::Input& input, proto::Outbox& /*out*/) { seen_.push_back(proto::erase(input)); }
  [[nodiscard]] const std::vector<proto::Erased>& seen() const { return seen_; }
  AREAL_FIELDS(seen_)

 private:
  std::vector<proto::Erased> seen_;
};

inline std::vector<node::ProtocolBox> two_listeners() {
  return {node::ProtocolBox(Listener()), node::ProtocolBox(Listener())};
}

}  // namespace areal::test
