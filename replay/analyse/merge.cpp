#include "replay/analyse/merge.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "engine/node/remote_cause.h"
#include "replay/analyse/deaths.h"
#include "replay/analyse/meetings.h"

namespace areal::analyse {

namespace {

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::uint32_t kNoStream = UINT32_MAX;

// All lines of a part, before any is merged: whose it is, and which events meetings must know of.
class PartScan : public port::EventSink {
 public:
  void on_event(const port::TraceEvent& event) override {
    if (!process && event.what != port::TraceWhat::kFault) process = ProcessId{event.node, event.incarnation};
    if (event.record.kind == port::JoinGroup::kKind) joins.push_back(event);
  }

  std::optional<ProcessId> process;
  std::vector<port::TraceEvent> joins;
};

// What "folder/engine.0.rank.1.2.db" names: nothing if it is not NODE.INCARNATION.db.
std::optional<ProcessId> process_of_name(std::string_view file, const std::vector<record::NodeRow>& nodes) {
  file.remove_prefix(file.find_last_of('/') + 1);  // npos + 1 is 0.
  if (!file.ends_with(".db")) return std::nullopt;
  file.remove_suffix(3);
  const std::size_t dot = file.find_last_of('.');
  if (dot == std::string_view::npos) return std::nullopt;
  ProcessId process;
  const std::string_view digits = file.substr(dot + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), process.incarnation);
  const auto node = std::ranges::find(nodes, file.substr(0, dot), &record::NodeRow::name);
  if (error != std::errc() || end != digits.data() + digits.size() || node == nodes.end()) return std::nullopt;
  process.node = node->id;
  return process;
}

Result<PartScan> scan(const NamedReader& part, const std::vector<record::NodeRow>& nodes) {
  PartScan scan;
  const Status status = part.reader->read_all(scan);
  if (!status) return Error{status.error().code, part.name + ": " + status.error().detail};
  if (!scan.process) scan.process = process_of_name(part.name, nodes);
  if (scan.process) return scan;
  return Error{Errc::kInvalid, part.name + ": neither its events nor its name say which process it is of"};
}

// One part, and who waits for it.
struct Slot {
  MergePart part;
  std::string file;
  std::vector<std::size_t> waiters;  // Parts whose step waits for this one.
  bool is_ready = false;
  bool waits_for_meeting = false;      // For nothing that must come first.
  std::vector<std::uint32_t> streams;  // New numbers of its decision streams, by its own.
};

// Slots ascend by process, so their numbers break ties of times and Lamport numbers.
struct IsLater {
  const std::vector<Slot>& slots;
  bool operator()(std::size_t left, std::size_t right) const {
    const MergePart& a = slots[left].part;
    const MergePart& b = slots[right].part;
    if (a.at() != b.at()) return a.at() > b.at();
    return a.lamport() != b.lamport() ? a.lamport() > b.lamport() : left > right;
  }
};

class Merger {
 public:
  Merger(const MergeHead& head, port::TraceSink& sink) : names_(head.nodes), sink_(sink) {}

  Status open(const MergeHead& head, std::span<const NamedReader> parts) {
    std::vector<port::TraceEvent> joins;
    for (const NamedReader& named : parts) {
      const auto scanned = scan(named, head.nodes);
      if (!scanned) return scanned.error();
      slots_.push_back({MergePart(*named.reader, *scanned->process), named.name, {}, false, false, {}});
      joins.insert(joins.end(), scanned->joins.begin(), scanned->joins.end());
    }
    std::ranges::stable_sort(slots_, {}, [](const Slot& slot) { return slot.part.process(); });
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      ended_.push_back(slots_[i].part.last_seq() == 0);
      if (i == 0 || slots_[i - 1].part.process() != slots_[i].part.process()) continue;
      return Error{Errc::kInvalid, slots_[i - 1].file + " and " + slots_[i].file + " are of the same process"};
    }
    for (const port::TraceEvent& join : joins) {
      const std::size_t part = find({join.node, join.incarnation});
      if (part != kNone) meetings_.foresee(part, join);
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) AREAL_TRY(advance(i));
    return Unit{};
  }

  Status run() {
    while (!ready_.empty() || release()) {
      // det-ok: unstable-sort: no two steps are equal, so there is one order.
      std::ranges::pop_heap(ready_, IsLater{slots_});
      const std::size_t index = ready_.back();
      ready_.pop_back();
      slots_[index].is_ready = false;
      AREAL_TRY(emit(index));
      AREAL_TRY(advance(index));
      // Whoever waited looks again; most wait for the step that was just merged.
      for (const std::size_t waiter : std::exchange(slots_[index].waiters, {})) AREAL_TRY(queue(waiter));
    }
    for (const Slot& slot : slots_) {
      if (slot.part.at_end()) continue;
      return Error{Errc::kCorrupt, slot.file + ": what happened there and in other parts each came before the other"};
    }
    return Unit{};
  }

  MergeResult result() {
    MergeResult result;
    result.events = seq_;
    result.lost_causes = lost_causes_;
    result.open_meetings = open_meetings_;
    for (const Slot& slot : slots_) {
      const ProcessId id = slot.part.process();
      MergedProcess process{id, process_name(id), slot.part.last_seq(), slot.part.truncated(), false};
      process.death_shown = process.truncated && deaths_.take(id);
      result.processes.push_back(std::move(process));
    }
    for (const ProcessId& id : absent_) result.absent.push_back(process_name(id));
    result.offsets = offsets_.estimates();
    return result;
  }

 private:
  [[nodiscard]] std::string process_name(const ProcessId& id) const {
    return names_.name(id.node) + " #" + std::to_string(id.incarnation);
  }
  [[nodiscard]] std::size_t find(const ProcessId& id) const {
    const auto place = std::ranges::lower_bound(slots_, id, {}, [](const Slot& slot) { return slot.part.process(); });
    return place != slots_.end() && place->part.process() == id ? static_cast<std::size_t>(place - slots_.begin())
                                                                : kNone;
  }
  static ProcessId process_of_cause(std::uint64_t cause) {
    const node::RemoteCause remote = node::remote_cause_of(cause);
    return {remote.node, remote.incarnation};
  }

  Status advance(std::size_t index) {
    Slot& slot = slots_[index];
    const Status status = slot.part.advance();
    if (!status) return Error{status.error().code, slot.file + ": " + status.error().detail};
    ended_[index] = slot.part.at_end();
    return queue(index);
  }

  // Makes the step of part `index` ready, or lets it wait for the first thing that comes before it.
  Status queue(std::size_t index) {
    Slot& slot = slots_[index];
    if (slot.part.at_end() || slot.is_ready) return Unit{};
    auto before = must_wait_for(index);
    if (!before) return std::move(before).error();
    slot.waits_for_meeting = *before == kNone;
    for (const TraceLine& line : slot.part.step()) {
      if (*before != kNone) break;
      const auto* event = std::get_if<port::TraceEvent>(&line);
      if (event != nullptr) *before = meetings_.awaited(*event, ended_);
    }
    if (*before != kNone) return slots_[*before].waiters.push_back(index), Unit{};
    make_ready(index);
    return Unit{};
  }

  // The part of something that must come before the step of part `index` and has not yet; kNone: nothing must.
  Result<std::size_t> must_wait_for(std::size_t index) {
    Slot& slot = slots_[index];
    const bool follows = index > 0 && slots_[index - 1].part.process().node == slot.part.process().node;
    if (slot.part.is_first() && follows && !slots_[index - 1].part.at_end()) return index - 1;
    for (const TraceLine& line : slot.part.step()) {
      const auto* event = std::get_if<port::TraceEvent>(&line);
      if (event == nullptr || !node::is_remote(event->cause)) continue;
      const std::size_t other = find(process_of_cause(event->cause));
      if (other == kNone) continue;
      const std::uint64_t seq = node::remote_cause_of(event->cause).seq;
      const Slot& cause = slots_[other];
      if (seq > cause.part.last_seq() && !cause.part.truncated()) {
        return Error{Errc::kCorrupt, slot.file + ": event " + std::to_string(event->seq) + " was caused by event " +
                                         std::to_string(seq) + " of " + cause.file + ", which has none of that number"};
      }
      if (seq <= cause.part.last_seq() && cause.part.find_moved(seq) == nullptr) return other;
    }
    return kNone;
  }

  void make_ready(std::size_t index) {
    slots_[index].is_ready = true;
    slots_[index].waits_for_meeting = false;
    ready_.push_back(index);
    // det-ok: unstable-sort: no two steps are equal, so there is one order.
    std::ranges::push_heap(ready_, IsLater{slots_});
  }

  // Everybody waits: whoever waits only for a meeting, and comes first, goes on without it. False if nobody does.
  bool release() {
    std::size_t first = kNone;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].part.at_end() || !slots_[i].waits_for_meeting) continue;
      if (first == kNone || IsLater{slots_}(first, i)) first = i;
    }
    if (first == kNone) return false;
    ++open_meetings_;
    make_ready(first);
    return true;
  }

  Status emit(std::size_t index) {
    Slot& slot = slots_[index];
    for (TraceLine& line : slot.part.step()) {
      if (auto* event = std::get_if<port::TraceEvent>(&line)) {
        AREAL_TRY(emit_event(index, *event));
      } else if (const auto* state = std::get_if<StateLine>(&line)) {
        sink_.on_state(state->node, state->slot, state->digest);
      } else if (const auto* stream = std::get_if<StreamLine>(&line)) {
        if (stream->stream >= slot.streams.size()) slot.streams.resize(stream->stream + 1, kNoStream);
        slot.streams[stream->stream] = streams_;
        sink_.on_stream(streams_++, process_name(slot.part.process()) + " " + stream->name);
      } else {
        port::Decision decision = std::get<port::Decision>(line);
        if (decision.stream >= slot.streams.size() || slot.streams[decision.stream] == kNoStream) {
          return Error{Errc::kCorrupt, slot.file + ": a decision is of a stream without a name"};
        }
        decision.stream = slot.streams[decision.stream];
        sink_.on_decision(decision);
      }
    }
    return Unit{};
  }

  Status emit_event(std::size_t index, port::TraceEvent event) {
    Slot& slot = slots_[index];
    if (!node::is_remote(event.cause) && event.cause >= event.seq) {
      return Error{Errc::kCorrupt, slot.file + ": event " + std::to_string(event.seq) + " was caused by a later one"};
    }
    if (event.cause != 0) event.cause = moved_cause(index, event);
    event.seq = ++seq_;
    slot.part.moved({event.seq, event.at});
    deaths_.see(event);
    meetings_.see(event);
    sink_.on_event(event);
    return Unit{};
  }

  // The new number of the cause; 0 if it is lost.
  std::uint64_t moved_cause(std::size_t index, const port::TraceEvent& event) {
    if (!node::is_remote(event.cause)) return slots_[index].part.find_moved(event.cause)->seq;
    const ProcessId process = process_of_cause(event.cause);
    const std::size_t other = find(process);
    if (other == kNone) {
      const auto place = std::ranges::lower_bound(absent_, process);
      if (place == absent_.end() || *place != process) absent_.insert(place, process);
    }
    const MergePart::Moved* moved =
        other != kNone ? slots_[other].part.find_moved(node::remote_cause_of(event.cause).seq) : nullptr;
    if (moved == nullptr) return ++lost_causes_, 0;
    if (other != index) offsets_.add(other, moved->at, index, event.at);
    return moved->seq;
  }

  record::NodeNames names_;
  port::TraceSink& sink_;
  std::vector<Slot> slots_;         // Ascending by process.
  std::vector<std::size_t> ready_;  // A heap: the step that comes first is at its front.
  std::uint64_t seq_ = 0;
  std::uint64_t lost_causes_ = 0;
  std::uint64_t open_meetings_ = 0;
  std::uint32_t streams_ = 0;
  std::vector<ProcessId> absent_;  // Ascending.
  std::vector<bool> ended_;        // By part: all of it is merged.
  Deaths deaths_;
  Meetings meetings_;
  ClockOffsets offsets_;
};

}  // namespace

Result<MergeResult> merge(const MergeHead& head, std::span<const NamedReader> parts, port::TraceSink& sink) {
  Merger merger(head, sink);
  AREAL_TRY(merger.open(head, parts));
  AREAL_TRY(merger.run());
  return merger.result();
}

}  // namespace areal::analyse
