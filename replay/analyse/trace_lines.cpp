#include "replay/analyse/trace_lines.h"

#include <algorithm>

#include "engine/port/trace_digest.h"

namespace areal::analyse {

namespace {

class Collector : public port::TraceSink {
 public:
  explicit Collector(std::vector<TraceLine>& lines) : lines_(lines) {}
  void on_event(const port::TraceEvent& event) override { lines_.emplace_back(event); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    lines_.emplace_back(StateLine{node, slot, digest});
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    lines_.emplace_back(StreamLine{stream, std::string(name)});
  }
  void on_decision(const port::Decision& decision) override { lines_.emplace_back(decision); }

 private:
  std::vector<TraceLine>& lines_;
};

port::TraceWords words_of(const TraceLine& line) {
  if (const auto* event = std::get_if<port::TraceEvent>(&line)) return port::TraceWords(*event);
  if (const auto* state = std::get_if<StateLine>(&line)) return {state->node, state->slot, state->digest};
  if (const auto* stream = std::get_if<StreamLine>(&line)) return {stream->stream, stream->name};
  return port::TraceWords(std::get<port::Decision>(line));
}

}  // namespace

bool same_line(const TraceLine& left, const TraceLine& right) {
  return std::ranges::equal(words_of(left).view(), words_of(right).view());
}

Result<const TraceLine*> LineStream::next() {
  while (next_line_ == lines_.size()) {
    if (next_block_ == reader_->blocks().size()) return static_cast<const TraceLine*>(nullptr);
    lines_.clear();
    next_line_ = 0;
    Collector collector(lines_);
    const std::size_t block = next_block_++;
    AREAL_TRY(walk_ ? reader_->read_block(block, collector, *walk_) : reader_->read_block(block, collector));
  }
  return &lines_[next_line_++];
}

}  // namespace areal::analyse
