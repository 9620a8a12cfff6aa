#include "replay/record/recording_writer.h"

#include <chrono>

#include "replay/record/schema.h"

namespace areal::record {

namespace {

// A block is also full at this size: runs with many decisions and few events must not grow one without end.
constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::chrono::seconds kCommitAfter{1};

std::string slots_text(const NodeRow& node) {
  std::string text;
  for (const std::string& slot : node.slots) text += (text.empty() ? "" : ",") + slot;
  return text;
}

}  // namespace

// Wall time decides only when is committed, which no reader can see.
struct RecordingWriter::Clock {
  std::chrono::steady_clock::time_point committed = std::chrono::steady_clock::now();
  [[nodiscard]] bool is_due() const { return std::chrono::steady_clock::now() - committed >= kCommitAfter; }
  void reset() { committed = std::chrono::steady_clock::now(); }
};

Result<std::unique_ptr<RecordingWriter>> RecordingWriter::open(const std::string& path, const RunInfo& info,
                                                               std::span<const NodeRow> nodes, const KindTable& kinds,
                                                               const RecorderOptions& options) {
  auto tables = TableWriter::create(path, options.page_size);
  if (!tables) return tables.error();
  std::unique_ptr<RecordingWriter> recorder(
      new RecordingWriter(std::move(*tables), nodes, StoredKinds(kinds), options));
  recorder->write_head(info, nodes, StoredKinds(kinds));
  AREAL_TRY(recorder->tables_->status());
  return recorder;
}

RecordingWriter::RecordingWriter(std::unique_ptr<TableWriter> tables, std::span<const NodeRow> nodes, StoredKinds kinds,
                                 const RecorderOptions& options)
    : options_(options),
      tables_(std::move(tables)),
      names_(nodes),
      typed_(names_, std::move(kinds)),
      clock_(std::make_unique<Clock>()) {}

RecordingWriter::~RecordingWriter() { close_block(); }

void RecordingWriter::write_head(const RunInfo& info, std::span<const NodeRow> nodes, const StoredKinds& kinds) {
  add_run_row("version", std::to_string(kSchemaVersion));
  add_run_row("scenario", info.scenario_name);
  add_run_row("half", info.half);
  add_run_row("program", info.program);
  add_run_row("seed", std::to_string(info.seed));
  for (const auto& [key, value] : info.overrides) add_run_row("override." + key, value);
  tables_->append(TableId::kScenario, {info.scenario_name, info.scenario_text});
  for (const NodeRow& node : nodes) {
    tables_->insert(TableId::kNode,
                    {number_cell(node.id.value), node.name, node.role, number_cell(node.host.value), slots_text(node)});
  }
  add_blob("kinds", kinds.bytes());
  tables_->commit();
}

void RecordingWriter::add_run_row(std::string_view key, std::string_view value) {
  tables_->append(TableId::kRun, {key, value});
}

std::uint64_t RecordingWriter::add_blob(std::string_view kind, std::span<const std::uint8_t> bytes) {
  const auto packed = compressor_.pack(bytes);
  if (!packed) return tables_->fail(packed.error()), 0;
  return tables_->append(TableId::kBlob, {kind, number_cell(bytes.size()), *packed});
}

void RecordingWriter::make_room() {
  if (encoder_.events() >= options_.block_events || encoder_.size() >= kBlockBytes) close_block();
}

void RecordingWriter::close_block() {
  if (encoder_.lines() == 0 || failed()) return;
  const auto bytes = encoder_.bytes();
  const std::size_t packable = encoder_.packable_bytes();
  const auto packed = compressor_.pack(bytes.first(packable), bytes.subspan(packable));
  if (!packed) return tables_->fail(packed.error());
  const std::string chain = to_hex(digest());
  tables_->append(TableId::kEventBlock, {number_cell(block_first_seq_), number_cell(last_seq_), block_first_ns_,
                                         number_cell(encoder_.events()), number_cell(encoder_.lines()), chain,
                                         number_cell(bytes.size()), *packed});
  encoder_.clear();
  block_first_seq_ = last_seq_ + 1;
  block_first_ns_ = last_ns_;
  if (++blocks_open_ < options_.blocks_per_commit && !clock_->is_due()) return;
  tables_->commit();
  blocks_open_ = 0;
  clock_->reset();
}

void RecordingWriter::on_event(const port::TraceEvent& event) {
  write_event(event);
  digest_.on_event(event);
}

void RecordingWriter::on_state(NodeId node, SlotId slot, const Digest128& digest) {
  write_state(node, slot, digest);
  digest_.on_state(node, slot, digest);
}

void RecordingWriter::on_stream(std::uint32_t stream, std::string_view name) {
  write_stream(stream, name);
  digest_.on_stream(stream, name);
}

void RecordingWriter::on_decision(const port::Decision& decision) {
  write_decision(decision);
  digest_.on_decision(decision);
}

void RecordingWriter::write(const TraceBatch& batch) {
  batch.each_line([this](const auto& line, std::span<const std::uint64_t> words) {
    using Line = std::decay_t<decltype(line)>;
    if constexpr (std::same_as<Line, port::TraceEvent>) write_event(line);
    if constexpr (std::same_as<Line, TraceBatch::State>) write_state(line.node, line.slot, line.digest);
    if constexpr (std::same_as<Line, TraceBatch::Stream>) write_stream(line.stream, line.name);
    if constexpr (std::same_as<Line, port::Decision>) write_decision(line);
    digest_.on_words(words);
  });
}

void RecordingWriter::write_event(const port::TraceEvent& event) {
  if (!failed()) {
    make_room();
    if (encoder_.events() == 0) {
      block_first_seq_ = event.seq;
      block_first_ns_ = event.at.ns;
    }
    encoder_.on_event(event);
    typed_.on_event(event, *tables_);
  }
  last_seq_ = event.seq;
  last_ns_ = event.at.ns;
  ++events_;
}

void RecordingWriter::write_state(NodeId node, SlotId slot, const Digest128& digest) {
  if (!failed()) encoder_.on_state(node, slot, digest);
}

void RecordingWriter::write_stream(std::uint32_t stream, std::string_view name) {
  if (failed()) return;
  make_room();
  encoder_.on_stream(stream, name);
  tables_->insert(TableId::kStream, {number_cell(stream), name});
}

void RecordingWriter::write_decision(const port::Decision& decision) {
  ++decisions_;
  if (failed()) return;
  make_room();
  encoder_.on_decision(decision);
  if (decision.chosen == 0) return;
  tables_->append(TableId::kDecision,
                  {number_cell(decision.stream), number_cell(decision.ordinal), number_cell(decision.bound),
                   number_cell(decision.chosen), number_cell(last_seq_)});
}

void RecordingWriter::add_violation(const ViolationRow& violation) {
  tables_->append(TableId::kViolation, {violation.invariant, violation.verdict, number_cell(violation.seq),
                                        names_.name(violation.node), violation.message});
  flush();
}

void RecordingWriter::flush() {
  close_block();
  tables_->commit();
}

void RecordingWriter::add_snapshot(std::uint64_t seq, std::span<const std::uint64_t> words) {
  ByteWriter bytes;
  for (const std::uint64_t word : words) bytes.varint(word);
  const std::uint64_t blob = add_blob("snapshot", bytes.view());
  tables_->insert(TableId::kSnapshot,
                  {number_cell(seq), number_cell(words.size()), to_hex(hash_words(words)), number_cell(blob)});
}

Status RecordingWriter::finish(const RunEnd& end) {
  close_block();
  typed_.finish(*tables_);
  add_run_row("verdict", end.verdict);
  add_run_row("digest", to_hex(digest()));
  add_run_row("events", std::to_string(events_));
  add_run_row("decisions", std::to_string(decisions_));
  add_run_row("end_ns", std::to_string(last_ns_));
  for (const auto& [key, count] : end.counts) add_run_row("count." + key, std::to_string(count));
  tables_->complete();
  return tables_->status();
}

}  // namespace areal::record
