#include "replay/analyse/dump.h"

#include "replay/analyse/line_text.h"

namespace areal::analyse {

namespace {

class Printer : public port::TraceSink {
 public:
  Printer(const record::RunReader& reader, const DumpFilter& filter, LineOut& out)
      : reader_(reader), filter_(filter), out_(out) {}

  void on_event(const port::TraceEvent& event) override {
    seq_ = event.seq;
    if (is_in_range() && is_node(event.node, event.slot) && is_kind(event)) print(event);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    if (filter_.with_states && is_in_range() && is_node(node, slot)) print(StateLine{node, slot, digest});
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    if (filter_.with_decisions && is_in_range()) print(StreamLine{stream, std::string(name)});
  }
  void on_decision(const port::Decision& decision) override {
    if (filter_.with_decisions && is_in_range()) print(decision);
  }

  // What comes before the first line of a block belongs to the event before it.
  void start_after(std::uint64_t seq) { seq_ = seq; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  [[nodiscard]] bool is_in_range() const { return seq_ >= filter_.from && seq_ <= filter_.to; }
  [[nodiscard]] bool is_node(NodeId node, SlotId slot) const {
    return matches_pattern(filter_.node, reader_.names().name(node)) ||
           matches_pattern(filter_.node, reader_.names().name(node, slot));
  }
  [[nodiscard]] bool is_kind(const port::TraceEvent& event) const {
    const record::StoredKinds& kinds = reader_.kinds();
    return matches_pattern(filter_.kind, kinds.name(event.record.kind)) ||
           (event.body.kind != 0 && matches_pattern(filter_.kind, kinds.name(event.body.kind)));
  }
  void print(const TraceLine& line) {
    out_.line(line_text(reader_, line));
    ++count_;
  }

  const record::RunReader& reader_;
  const DumpFilter& filter_;
  LineOut& out_;
  std::uint64_t seq_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // The last `*`, and where the text that it stands for ends so far.
  std::size_t star_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<std::uint64_t> dump(const record::RunReader& reader, const DumpFilter& filter, LineOut& out) {
  Printer printer(reader, filter, out);
  const auto blocks = reader.blocks();
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    if (blocks[index].last_seq < filter.from) continue;
    if (blocks[index].first_seq > filter.to && blocks[index].events > 0) break;
    printer.start_after(blocks[index].first_seq - (blocks[index].first_seq > 0 ? 1 : 0));
    AREAL_TRY(reader.read_block(index, printer));
  }
  return printer.count();
}

}  // namespace areal::analyse
