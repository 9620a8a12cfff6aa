#include "replay/analyse/history.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "engine/port/notes.h"
#include "engine/port/trace_sink.h"

namespace areal::analyse {

namespace {

// Fields of a record by the names that its recording gives them. The recording and the record must outlive it.
class NamedFields {
 public:
  NamedFields(const record::StoredKinds& kinds, const Record& record)
      : kind_(kinds.find(record.kind)), record_(&record) {}

  // 0, or "?", where the record has no such field.
  template <WordField T = std::uint64_t>
  [[nodiscard]] T number(std::string_view name) const {
    const auto place = find(name);
    return from_word<T>(place ? record_->words[place->word] : 0);
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto place = find(name);
    return place ? field_text(place->field, record_->view().subspan(place->word)) : "?";
  }

 private:
  [[nodiscard]] std::optional<FieldPlace> find(std::string_view name) const {
    if (kind_ == nullptr) return std::nullopt;
    const auto place = find_field(*kind_, name);
    if (!place || place->word + place->field.words > record_->size) return std::nullopt;
    return place;
  }

  const KindInfo* kind_;
  const Record* record_;
};

// Makes rows from notes, in the order in which they happen.
class HistoryReader : public port::EventSink {
 public:
  explicit HistoryReader(const record::RunReader& reader) : reader_(reader) {}

  void on_event(const port::TraceEvent& event) override {
    if (event.what != port::TraceWhat::kEffect || event.record.kind != port::Note::kKind) return;
    const NamedFields fields(reader_.kinds(), event.body);
    switch (event.body.kind) {
      case port::VersionPublished::kKind:
        history_.published.push_back({fields.number<Epoch>("epoch"), fields.number("version"),
                                      fields.number<Attempt>("attempt"), fields.text("mode"), fields.text("reason")});
        return;
      case port::AnchorSet::kKind:
        history_.anchors.push_back({fields.number<Epoch>("epoch"), fields.number("version"),
                                    fields.number<Attempt>("attempt"), fields.text("reason")});
        return;
      case port::Receipt::kKind:
        history_.receipts.push_back({fields.text("kind"), fields.number("subject"), fields.text("role"),
                                     fields.number("count"), fields.number("holders")});
        return;
      case port::UpdateStarted::kKind:
        return on_update_started(event.node, fields);
      case port::UpdateEnded::kKind:
        return on_update_ended(event.node, fields);
      case port::LeaseChanged::kKind:
        return on_lease(fields);
      default:  // Any kind number, also of newer programs.
        return;
    }
  }

  History take();

 private:
  // A row that is not at its end yet.
  struct OpenUpdate {
    NodeId node;
    std::size_t row = 0;
  };
  struct OpenLease {
    HostId host;
    std::uint64_t port = 0;
    std::size_t row = 0;
  };

  [[nodiscard]] std::vector<OpenUpdate>::iterator find_open(NodeId node, const UpdateRow& what) {
    return std::ranges::find_if(open_updates_, [&](const OpenUpdate& open) {
      const UpdateRow& row = history_.updates[open.row];
      return open.node == node && row.epoch == what.epoch && row.version == what.version && row.attempt == what.attempt;
    });
  }
  void on_update_started(NodeId node, const NamedFields& fields);
  void on_update_ended(NodeId node, const NamedFields& fields);
  void on_lease(const NamedFields& fields);

  const record::RunReader& reader_;
  History history_;
  std::vector<OpenUpdate> open_updates_;
  std::vector<OpenLease> open_leases_;
};

void HistoryReader::on_update_started(NodeId node, const NamedFields& fields) {
  UpdateRow row{fields.number<Epoch>("epoch"), fields.number("version"), fields.number<Attempt>("attempt"),
                fields.text("mode"),           fields.text("reason"),    {}};
  // Started again under one name: the first never ended.
  if (const auto open = find_open(node, row); open != open_updates_.end()) open_updates_.erase(open);
  open_updates_.push_back({node, history_.updates.size()});
  history_.updates.push_back(std::move(row));
}

void HistoryReader::on_update_ended(NodeId node, const NamedFields& fields) {
  UpdateRow end{fields.number<Epoch>("epoch"), fields.number("version"), fields.number<Attempt>("attempt"), "-", "-",
                fields.text("outcome")};
  const auto open = find_open(node, end);
  if (open == open_updates_.end()) {
    history_.updates.push_back(std::move(end));
    return;
  }
  history_.updates[open->row].outcome = end.outcome;
  open_updates_.erase(open);
}

// The rows of table port_lease, with every state that is said.
void HistoryReader::on_lease(const NamedFields& fields) {
  const auto host = fields.number<HostId>("host");
  const std::uint64_t port = fields.number("port");
  const std::string state = fields.text("state");
  const bool begins = state == to_text(port::LeaseState::kLeased);
  auto open =
      std::ranges::find_if(open_leases_, [&](const OpenLease& one) { return one.host == host && one.port == port; });
  if (begins && open != open_leases_.end()) {  // Leased twice: the first was never released.
    open_leases_.erase(open);
    open = open_leases_.end();
  }
  if (open == open_leases_.end()) {
    open = open_leases_.insert(open, {host, port, history_.leases.size()});
    history_.leases.push_back({.host = host, .holder = "-", .incarnation = 0, .port = port, .states = {}});
  }
  LeaseRow& row = history_.leases[open->row];
  // Who releases a port may not know whose it was.
  if (const auto holder = fields.number<NodeId>("holder"); holder.value != 0) {
    row.holder = reader_.names().name(holder);
    row.incarnation = fields.number<Incarnation>("incarnation");
  }
  row.states.push_back(state);
  if (state == to_text(port::LeaseState::kReleased)) open_leases_.erase(open);
}

// Ports are drawn, so only which leases have the same one is history.
void number_ports(std::vector<LeaseRow>& leases) {
  std::vector<std::uint64_t> seen;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (i > 0 && leases[i].host != leases[i - 1].host) seen.clear();
    const auto place = std::ranges::find(seen, leases[i].port);
    const auto index = static_cast<std::uint64_t>(place - seen.begin());
    if (place == seen.end()) seen.push_back(leases[i].port);
    leases[i].port = index + 1;
  }
}

History HistoryReader::take() {
  std::ranges::stable_sort(history_.published, {},
                           [](const PublishedRow& row) { return std::tuple(row.version, row.epoch, row.attempt); });
  std::ranges::stable_sort(history_.anchors, {},
                           [](const AnchorRow& row) { return std::tuple(row.version, row.epoch, row.attempt); });
  std::ranges::stable_sort(history_.receipts, {}, [](const ReceiptRow& row) {
    return std::tuple(std::string_view(row.kind), row.subject, std::string_view(row.role), row.count, row.holders);
  });
  std::ranges::stable_sort(history_.leases, {},
                           [](const LeaseRow& row) { return std::tuple(row.host, std::string_view(row.holder)); });
  std::ranges::stable_sort(history_.updates, {},
                           [](const UpdateRow& row) { return std::tuple(row.version, row.attempt, row.epoch); });
  number_ports(history_.leases);
  return std::move(history_);
}

}  // namespace

Result<History> read_history(const record::RunReader& reader) {
  HistoryReader rows(reader);
  AREAL_TRY(reader.read_all(rows));
  return rows.take();
}

}  // namespace areal::analyse
