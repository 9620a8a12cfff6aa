#include "sim/cli/story.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/proto/messages.h"
#include "sim/fault/fault_kinds.h"

namespace areal::cli {

std::string Story::name(NodeId node) const { return node.value == 0 ? "-" : room_.node(node).name; }

void Story::line(Instant at, const std::string& text) {
  if (out_ == nullptr) return;
  const auto whole_ms = at.ns / 1'000'000;
  fmt::print(out_, "{:>10}  {}\n", fmt::format("{:.1f} s", static_cast<double>(whole_ms) / 1e3), text);
}

void Story::print_head() {
  if (out_ == nullptr) return;
  const proto::ClusterMap& cluster = room_.cluster;
  fmt::print(out_, "{} ranks: trainer {} ({}), {} engines x {}; {} {} tensors {}\n\n", cluster.world(),
             cluster.train_world(), room_.scenario.train.backend, cluster.engines, cluster.engine_world,
             room_.model.title, count_text(room_.model.parameters.size()), bytes_text(room_.model.wire_bytes()));
  fmt::print(out_, "{:>10}  {:<7} {:<6} {:<22} {:>10} {:>10}   {}\n", "t", "update", "mode", "why", "moved", "took",
             "engines");
}

void Story::on_event(const port::TraceEvent& event) {
  if (event.what == port::TraceWhat::kFault) {
    dispatch_record<sim::FaultApplied>(event.record, [&](const sim::FaultApplied& fault) {
      ++totals_.faults;
      if (fault.kind == sim::FaultName::kLoseMessage || fault.kind == sim::FaultName::kDelayMessage) return;
      line(event.at, fmt::format("FAULT   #{} {} {}", fault.fault, to_text(fault.kind), name(fault.node)));
    });
  } else if (event.what == port::TraceWhat::kDropped) {
    const Record& what = event.body.kind != 0 ? event.body : event.record;
    line(event.at,
         fmt::format("RULE    #{} took {} away at {}", event.rule, to_text(room_.kinds, what), name(event.node)));
  } else if (event.record.kind == port::Note::kKind) {
    on_note(event);
  } else if (event.record.kind == port::MessageIn::kKind) {
    on_message(event);
  }
}

void Story::on_message(const port::TraceEvent& event) {
  if (event.body.kind != proto::UpdateRequest::kKind) return;
  const auto message = from_record<port::MessageIn>(event.record);
  const auto asked = from_record<proto::UpdateRequest>(event.body);
  training_epoch_ = std::max(training_epoch_, asked.training_epoch);
  if (++seen_requests_[message.request.value] < 2) return;
  ++totals_.asked_again;
  // Still under way, or of a history whose first version comes yet: its answer will come.
  if (asked.version > published_ || asked.training_epoch > published_epoch_) return;
  line(event.at,
       fmt::format("        controller asks again for v{}; answered from memory, nothing moves twice", asked.version));
}

void Story::on_note(const port::TraceEvent& event) {
  const Record& note = event.body;
  count(note);
  dispatch_record<port::ProcessChanged>(note, [&](const auto& said) { on_process(event, said); });
  dispatch_record<port::PairChanged>(note, [&](const auto& said) { on_pair(event, said); });
  dispatch_record<port::VersionPublished>(note, [&](const auto& said) { on_published(event, said); });
  dispatch_record<port::UpdateStarted>(note, [&](const port::UpdateStarted& said) {
    if (said.attempt == 1) update_began_ = event.at;
    updating_ = said.version;
  });
  dispatch_record<port::UpdateEnded>(note, [&](const port::UpdateEnded& said) {
    if (said.outcome == port::Outcome::kOk) return;
    ++totals_.failed_attempts;
    const std::string on = said.peer.value != 0 ? " on " + name(said.peer) : "";
    line(event.at,
         fmt::format("        attempt {} of v{} ended: {}{}", said.attempt, said.version, to_text(said.outcome), on));
  });
  dispatch_record<port::WeightsState>(note, [&](const port::WeightsState& said) {
    if (said.state != port::ServeState::kQuarantined || said.rank != 0) return;
    line(event.at, fmt::format("        e{} quarantined: serves nothing until a full update", said.engine.value));
  });
  dispatch_record<port::RunEnded>(note, [&](const port::RunEnded& said) {
    if (said.end == port::RunEnd::kCompleted) return;
    line(event.at, fmt::format("        training stopped at step {}: {}", said.step, to_text(said.end)));
  });
}

void Story::on_process(const port::TraceEvent& event, const port::ProcessChanged& said) {
  if (!said.alive) {
    line(event.at, fmt::format("        {} saw {} #{} die", name(event.node), name(said.node), said.incarnation));
  } else if (said.incarnation > 1) {
    line(event.at, fmt::format("        {} leased port {} for {} #{}", name(event.node), said.port, name(said.node),
                               said.incarnation));
  }
}

void Story::on_pair(const port::TraceEvent& event, const port::PairChanged& said) {
  if (said.state == port::PairState::kBroken) line(event.at, fmt::format("        pair BROKEN (epoch {})", said.epoch));
  if (said.state == port::PairState::kConnected && said.epoch > 1 && said.version != updating_) {
    line(event.at, fmt::format("        reconnected as epoch {}", said.epoch));
  }
}

void Story::on_published(const port::TraceEvent& event, const port::VersionPublished& said) {
  published_ = said.version;
  published_epoch_ = training_epoch_;
  std::string why(to_text(said.reason));
  if (said.attempt > 1) why += fmt::format(" (attempt {})", said.attempt);
  std::string engines;
  for (std::uint32_t e = 0; e < room_.cluster.engines; ++e) engines += fmt::format("e{} v{}  ", e, said.version);
  line(event.at, fmt::format("v{:<6} {:<6} {:<22} {:>10} {:>10}   {}", said.version, to_text(said.mode), why,
                             bytes_text(said.bytes),
                             to_text(Duration{(event.at - update_began_).ns / 1'000'000 * 1'000'000}), engines));
}

void Story::count(const Record& note) {
  dispatch_record<port::VersionPublished>(note, [&](const port::VersionPublished& said) {
    ++(said.mode == port::UpdateMode::kFull ? totals_.full : totals_.delta);
  });
  dispatch_record<port::Admitted>(note, [&](const auto&) { ++totals_.groups_admitted; });
  dispatch_record<port::GroupFinished>(note, [&](const port::GroupFinished& said) {
    ++(said.accepted ? totals_.groups_accepted : totals_.groups_rejected);
  });
  dispatch_record<port::GroupConsumed>(note, [&](const port::GroupConsumed& said) {
    ++totals_.groups_consumed;
    totals_.most_staleness = std::max(totals_.most_staleness, said.version - std::min(said.version, said.oldest));
  });
  dispatch_record<port::SegmentStored>(note, [&](const port::SegmentStored& said) {
    ++totals_.segments;
    totals_.tokens += said.tokens;
    if (said.end == port::SegmentEnd::kAborted) ++totals_.resubmitted;
  });
  dispatch_record<port::LeaseChanged>(note, [&](const port::LeaseChanged& said) {
    if (said.state == port::LeaseState::kLeased) ++totals_.leases;
  });
  dispatch_record<port::Receipt>(note, [&](const auto&) { ++totals_.receipts; });
}

}  // namespace areal::cli
