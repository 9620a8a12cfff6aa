#include "sim/fault/probe_store.h"

namespace areal::sim {

void ProbeStore::want(KindId kind) {
  if (std::ranges::find(probes_, kind, &Probe::kind) == probes_.end()) probes_.push_back({kind, {}});
}

void ProbeStore::see(NodeId node, const Record& note) {
  const auto probe = std::ranges::find(probes_, note.kind, &Probe::kind);
  if (probe == probes_.end()) return;
  if (probe->latest.size() <= node.value) probe->latest.resize(node.value + 1);
  probe->latest[0] = note;
  probe->latest[node.value] = note;
}

const Record* ProbeStore::latest(KindId kind, NodeId node) const {
  const auto probe = std::ranges::find(probes_, kind, &Probe::kind);
  if (probe == probes_.end() || probe->latest.size() <= node.value) return nullptr;
  const Record& note = probe->latest[node.value];
  return note.kind == 0 ? nullptr : &note;
}

void ProbeStore::save(StateWriter& writer) const { writer.value(probes_); }

bool ProbeStore::load(StateReader& reader) {
  std::vector<Probe> read;
  reader.value(read);
  const bool same = reader.ok() && std::ranges::equal(read, probes_, {}, &Probe::kind, &Probe::kind);
  if (same) probes_ = std::move(read);
  return same;
}

}  // namespace areal::sim
