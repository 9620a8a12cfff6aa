// The latest notes that rules ask for: "node.version_published.version", "node.self.weights_state.version".
#pragma once
#include <vector>

#include "engine/base/record.h"
#include "engine/base/state.h"

namespace areal::sim {

class ProbeStore {
 public:
  // Notes of this kind are kept from now on.
  void want(KindId kind);
  void see(NodeId node, const Record& note);
  // The latest note of a kind at `node`, or anywhere if it is 0; null if there was none.
  [[nodiscard]] const Record* latest(KindId kind, NodeId node) const;

  void save(StateWriter& writer) const;
  bool load(StateReader& reader);

 private:
  struct Probe {
    KindId kind = 0;
    std::vector<Record> latest;  // By node; entry 0: of any node. Kind 0: none yet.
    AREAL_FIELDS(kind, latest)
  };
  std::vector<Probe> probes_;
};

}  // namespace areal::sim
