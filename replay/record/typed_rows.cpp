#include "replay/record/typed_rows.h"

namespace areal::record {

namespace {

using port::TraceEvent;
using port::TraceWhat;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

Cell time_cell(Instant at) { return at.ns; }
Cell name_cell(NodeId node, const std::string& name) {
  return node.value != 0 ? Cell(std::string_view(name)) : Cell(std::monostate{});
}
Cell optional_cell(const std::optional<Instant>& at) { return at ? Cell(at->ns) : Cell(std::monostate{}); }

bool is_collective(port::BatchKind kind) { return kind != port::BatchKind::kSend && kind != port::BatchKind::kReceive; }

}  // namespace

void TypedRows::on_event(const TraceEvent& event, TableWriter& tables) {
  switch (event.what) {
    case TraceWhat::kInput:
      on_input(event, tables);
      return;
    case TraceWhat::kEffect:
      on_effect(event, tables);
      return;
    case TraceWhat::kFault:
      on_fault(event, kinds_.name(event.record.kind), kinds_.to_text(event.record), tables);
      return;
    case TraceWhat::kDropped: {
      // A note's body, or what a message or a tell would have said.
      const std::string body = kinds_.to_text(event.body);
      on_fault(event, "drop", kinds_.to_text(event.record) + (body.empty() ? "" : " " + body), tables);
      return;
    }
  }
}

void TypedRows::on_fault(const TraceEvent& event, const std::string& kind, const std::string& text,
                         TableWriter& tables) {
  const std::string node = names_.name(event.node);
  for (const TableId table : {TableId::kEvent, TableId::kFault}) {
    tables.insert(table, {number_cell(event.seq), time_cell(event.at), node, kind, number_cell(event.cause), text});
  }
}

void TypedRows::on_input(const TraceEvent& event, TableWriter& tables) {
  const Owner owner{event.node, event.incarnation, event.slot};
  dispatch_record<port::GroupJoined, port::BatchDone>(
      event.record, Overloaded{[&](const port::GroupJoined& end) {
                                 const auto found = joins_.find({owner, end.group});
                                 if (found == joins_.end()) return;
                                 write(found->second, &end, event.at, tables);
                                 joins_.erase(found);
                               },
                               [&](const port::BatchDone& end) {
                                 const auto found = collectives_.find({owner, end.group, end.batch});
                                 if (found == collectives_.end()) return;
                                 write(found->second, &end, event.at, tables);
                                 collectives_.erase(found);
                               }});
}

void TypedRows::on_effect(const TraceEvent& event, TableWriter& tables) {
  if (event.record.kind == port::Note::kKind) {
    tables.insert(TableId::kEvent,
                  {number_cell(event.seq), time_cell(event.at), names_.name(event.node), kinds_.name(event.body.kind),
                   number_cell(event.cause), kinds_.to_text(event.body)});
    on_note(event, tables);
    return;
  }
  const Owner owner{event.node, event.incarnation, event.slot};
  // What was under way under an id that is used again never ended: it is written as such.
  dispatch_record<port::JoinGroup, port::PostBatch>(
      event.record, Overloaded{[&](const port::JoinGroup& what) {
                                 const Begin start{event.seq, names_.name(event.node), event.at};
                                 const auto [place, is_new] =
                                     joins_.try_emplace({owner, what.group}, Join{start, what});
                                 if (is_new) return;
                                 write(place->second, nullptr, {}, tables);
                                 place->second = {start, what};
                               },
                               [&](const port::PostBatch& what) {
                                 if (!is_collective(what.kind)) return;
                                 const Begin start{event.seq, names_.name(event.node), event.at};
                                 const auto [place, is_new] =
                                     collectives_.try_emplace({owner, what.group, what.batch}, Collective{start, what});
                                 if (is_new) return;
                                 write(place->second, nullptr, {}, tables);
                                 place->second = {start, what};
                               }});
}

void TypedRows::on_note(const TraceEvent& event, TableWriter& tables) {
  const Begin here{event.seq, names_.name(event.node), event.at};
  const Cell seq = number_cell(event.seq);
  dispatch_record<port::UpdateStarted, port::UpdateEnded, port::VersionPublished, port::AnchorSet, port::SegmentStored,
                  port::Receipt, port::LeaseChanged>(
      event.body,
      Overloaded{
          [&](const port::UpdateStarted& what) {
            const auto [place, is_new] =
                transfers_.try_emplace({event.node, what.epoch, what.version, what.attempt}, Transfer{here, what});
            if (is_new) return;
            write(place->second, nullptr, {}, tables);
            place->second = {here, what};
          },
          [&](const port::UpdateEnded& end) { on_update_ended(event, end, tables); },
          [&](const port::VersionPublished& what) {
            tables.insert(TableId::kWeightVersion, {seq, here.node, number_cell(what.version), number_cell(what.epoch),
                                                    number_cell(what.attempt), to_text(what.mode), to_text(what.reason),
                                                    number_cell(what.bytes), time_cell(event.at)});
          },
          [&](const port::AnchorSet& what) {
            tables.insert(TableId::kAnchor, {seq, here.node, number_cell(what.epoch), number_cell(what.version),
                                             number_cell(what.attempt), to_text(what.reason), time_cell(event.at)});
          },
          [&](const port::SegmentStored& what) {
            tables.insert(TableId::kRequest,
                          {seq, time_cell(event.at), here.node, number_cell(what.sample.value),
                           number_cell(what.engine.value), number_cell(what.pinned), number_cell(what.label),
                           number_cell(what.tokens), to_text(what.end), to_hex(what.digest)});
          },
          [&](const port::Receipt& what) {
            tables.insert(TableId::kReceipt, {seq, time_cell(event.at), here.node, to_text(what.kind),
                                              number_cell(what.subject), to_text(what.role), number_cell(what.count),
                                              number_cell(what.holders), to_hex(what.digest)});
          },
          [&](const port::LeaseChanged& change) { on_lease(event, change, tables); },
      });
}

void TypedRows::on_update_ended(const TraceEvent& event, const port::UpdateEnded& end, TableWriter& tables) {
  const Begin here{event.seq, names_.name(event.node), event.at};
  const auto found = transfers_.find({event.node, end.epoch, end.version, end.attempt});
  if (found != transfers_.end()) {
    write(found->second, &end, here, tables);
    transfers_.erase(found);
    return;
  }
  // An end without a start is a row too: its start is NULL.
  tables.insert(TableId::kTransfer, {number_cell(event.seq), here.node, number_cell(end.epoch),
                                     number_cell(end.version), number_cell(end.attempt), std::monostate{},
                                     std::monostate{}, to_text(end.outcome), name_cell(end.peer, names_.name(end.peer)),
                                     std::monostate{}, time_cell(event.at), number_cell(event.seq)});
}

void TypedRows::on_lease(const TraceEvent& event, const port::LeaseChanged& change, TableWriter& tables) {
  const std::pair key{change.host, change.port};
  auto found = leases_.find(key);
  if (change.state == port::LeaseState::kLeased && found != leases_.end()) {
    write(found->second, std::nullopt, tables);  // Leased twice: the first was never released.
    leases_.erase(found);
    found = leases_.end();
  }
  if (found == leases_.end()) found = leases_.emplace(key, Lease{event.seq, change, {}, {}}).first;
  Lease& lease = found->second;
  if (change.holder.value != 0) lease.what = change;
  switch (change.state) {
    case port::LeaseState::kLeased:
      lease.leased = event.at;
      return;
    case port::LeaseState::kBound:
      lease.bound = event.at;
      return;
    case port::LeaseState::kReleased:
      write(lease, event.at, tables);
      leases_.erase(found);
      return;
  }
}

void TypedRows::write(const Transfer& transfer, const port::UpdateEnded* end, const Begin& at,
                      TableWriter& tables) const {
  const port::UpdateStarted& what = transfer.what;
  const std::string peer = end != nullptr ? names_.name(end->peer) : "";
  const Cell none = std::monostate{};
  tables.insert(TableId::kTransfer,
                {number_cell(transfer.start.seq), transfer.start.node, number_cell(what.epoch),
                 number_cell(what.version), number_cell(what.attempt), to_text(what.mode), to_text(what.reason),
                 end != nullptr ? Cell(to_text(end->outcome)) : none,
                 end != nullptr ? name_cell(end->peer, peer) : none, time_cell(transfer.start.at),
                 end != nullptr ? time_cell(at.at) : none, end != nullptr ? number_cell(at.seq) : none});
}

void TypedRows::write(const Lease& lease, std::optional<Instant> released, TableWriter& tables) const {
  const std::string holder = names_.name(lease.what.holder);
  tables.insert(TableId::kPortLease,
                {number_cell(lease.seq), number_cell(lease.what.host.value), number_cell(lease.what.port),
                 name_cell(lease.what.holder, holder), number_cell(lease.what.incarnation), optional_cell(lease.leased),
                 optional_cell(lease.bound), optional_cell(released)});
}

void TypedRows::write(const Join& join, const port::GroupJoined* end, Instant at, TableWriter& tables) const {
  const Cell none = std::monostate{};
  tables.insert(TableId::kComm, {number_cell(join.start.seq), join.start.node, number_cell(join.what.group.value),
                                 to_text(join.what.backend), number_cell(join.what.rank), number_cell(join.what.world),
                                 number_cell(join.what.port), end != nullptr ? Cell(to_text(end->outcome)) : none,
                                 time_cell(join.start.at), end != nullptr ? time_cell(at) : none});
}

void TypedRows::write(const Collective& collective, const port::BatchDone* end, Instant at, TableWriter& tables) const {
  const port::PostBatch& what = collective.what;
  const std::string peer = end != nullptr ? names_.name(end->peer) : "";
  const Cell none = std::monostate{};
  tables.insert(TableId::kCollective,
                {number_cell(collective.start.seq), collective.start.node, number_cell(what.group.value),
                 number_cell(what.batch.value), to_text(what.kind), number_cell(what.tag), number_cell(what.version),
                 number_cell(what.value), number_cell(what.count), end != nullptr ? Cell(to_text(end->outcome)) : none,
                 end != nullptr ? name_cell(end->peer, peer) : none, end != nullptr ? number_cell(end->value) : none,
                 end != nullptr ? number_cell(end->count) : none, time_cell(collective.start.at),
                 end != nullptr ? time_cell(at) : none});
}

void TypedRows::finish(TableWriter& tables) {
  for (const auto& [key, transfer] : transfers_) write(transfer, nullptr, {}, tables);
  for (const auto& [key, lease] : leases_) write(lease, std::nullopt, tables);
  for (const auto& [key, join] : joins_) write(join, nullptr, {}, tables);
  for (const auto& [key, collective] : collectives_) write(collective, nullptr, {}, tables);
  transfers_.clear();
  leases_.clear();
  joins_.clear();
  collectives_.clear();
}

}  // namespace areal::record
