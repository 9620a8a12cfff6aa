#include "engine/real/node_program.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <memory>
#include <utility>

#include "engine/config/scenario_yaml.h"
#include "engine/node/node.h"
#include "engine/node/room_plan.h"
#include "engine/real/note_lines.h"
#include "engine/real/planned_faults.h"
#include "engine/real/process_ports.h"
#include "engine/real/run_paper.h"
#include "replay/record/meta_file.h"
#include "replay/record/recorder.h"
#include "sim/fault/fault_kinds.h"

namespace areal::real {
namespace {

constexpr int kRefused = 64;
constexpr int kSystem = 70;
// How much of its trace a process that is killed may lose.
constexpr Duration kFlushEvery = 250_ms;
// Small, because each commit writes a page of each table that has news.
constexpr std::uint32_t kPageSize = 4096;

int fail(int status, const std::string& what) {
  fmt::print(stderr, "areal-node: {}\n", what);
  return status;
}

// Set by the handler of SIGTERM and SIGINT, which may run on any thread; looked at by the loop.
std::atomic<bool> told_to_end{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a signal's
static_assert(std::atomic<bool>::is_always_lock_free);
void on_signal(int /*signal*/) { told_to_end = true; }

// Records the trace, lets faults see it, and tells the starter of notes.
class NodeSink final : public port::TraceSink {
 public:
  NodeSink(record::Recorder& recorder, bool prints_notes) : recorder_(recorder), prints_notes_(prints_notes) {}

  void set_faults(PlannedFaults* faults) { faults_ = faults; }

  void on_event(const port::TraceEvent& event) override {
    recorder_.on_event(event);
    const bool note = event.record.kind == port::Note::kKind || event.what == port::TraceWhat::kFault;
    if (prints_notes_ && note) fmt::print("{}\n", line_of(event)), std::fflush(stdout);
    if (faults_ != nullptr && event.what != port::TraceWhat::kFault) faults_->on_event(event);
  }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override { recorder_.on_state(node, slot, digest); }
  void on_stream(std::uint32_t stream, std::string_view name) override { recorder_.on_stream(stream, name); }
  void on_decision(const port::Decision& decision) override { recorder_.on_decision(decision); }

 private:
  record::Recorder& recorder_;
  PlannedFaults* faults_ = nullptr;
  bool prints_notes_ = false;
};

Result<std::unique_ptr<record::Recorder>> open_recorder(const NodeProgramOptions& options, const node::RoomPlan& room,
                                                        std::uint64_t seed) {
  record::RunInfo info;
  info.scenario_name = room.scenario.name;
  info.scenario_text = room.scenario.resolved;
  info.program = "areal-node 0.1.0";
  info.seed = seed;
  info.overrides.emplace_back("profile", "calm");
  info.overrides.emplace_back("backend", "gloo");
  std::vector<record::NodeRow> nodes;
  nodes.reserve(room.nodes.size());
  for (const node::RoomNode& node : room.nodes) {
    nodes.push_back({node.id, node.name, std::string(to_text(node.role)), node.host, node::slot_names(room, node)});
  }
  KindTable kinds;
  node::add_room_kinds(kinds);
  sim::add_fault_kinds(kinds);
  const std::string path = recording_file(options.folder, options.node, options.incarnation).string();
  return record::Recorder::open(path, info, nodes, kinds, {.page_size = kPageSize});
}

// What a process is made of, in the order in which it is built; taken down in reverse.
class NodeProcess {
 public:
  NodeProcess(NodeProgramOptions options, RunPaper paper, node::RoomPlan room)
      : options_(std::move(options)), paper_(std::move(paper)), room_(std::move(room)) {}

  // 0 when it can run.
  int set_up() {
    place_ = room_.find(options_.node);
    if (place_ == nullptr) return fail(kRefused, "no node '" + options_.node + "' in the scenario");
    auto loop = host::Loop::create(paper_.epoch);
    if (!loop) return fail(kSystem, loop.error().detail);
    loop_ = std::move(*loop);
    auto recorder = open_recorder(options_, room_, paper_.seed);
    if (!recorder) return fail(kSystem, recorder.error().detail);
    recorder_ = std::move(*recorder);
    sink_ = std::make_unique<NodeSink>(*recorder_, options_.prints_notes);
    node_ = std::make_unique<node::Node>(place_->id, place_->name, node::protocols_of(room_, *place_));
    auto faults = PlannedFaults::make(room_, {place_->id, options_.incarnation}, paper_.seed, *loop_, *sink_,
                                      [this] { return process_->ports().next_seq(); });
    if (!faults) return fail(kRefused, faults.error().detail);
    faults_ = std::move(*faults);
    faults_->set_order([this](const sim::FaultAction& action) { order(action); });
    auto process = ProcessPorts::open({options_.folder, paper_, place_->id, options_.incarnation, options_.port},
                                      {loop_.get(), &room_, node_.get(), sink_.get(), faults_.get()});
    if (!process) return fail(kSystem, process.error().detail);
    process_ = std::move(*process);
    // Whom the starter of the run signals when a fault is due here.
    std::ofstream(pid_file(options_.folder, place_->id)) << getpid() << '\n';
    return 0;
  }

  int run() {
    sink_->set_faults(faults_.get());
    watch();
    flush();
    faults_->start();
    process_->ports().start(options_.incarnation, options_.port, paper_.seed);
    loop_->run();
    return finish();
  }

 private:
  // Whoever started the run carries it out. A process that must die stands still from here on, with everything that led
  // to it on record.
  void order(const sim::FaultAction& action) {
    FaultOrder order;
    order.kill = action.act == sim::FaultAct::kKill;
    order.node = action.node;
    order.lasts = action.until - loop_->now();
    const bool own = order.kill && order.node == place_->id;
    if (own) recorder_->flush();
    fmt::print("{}\n", line_of(order));
    std::fflush(stdout);
    if (own) std::raise(SIGSTOP);
  }

  void watch() {
    if (told_to_end) {
      process_->children().end_all();
      loop_->stop();
      return;
    }
    loop_->arm(10_ms, [this] { watch(); });
  }

  void flush() {
    recorder_->flush_soon();
    loop_->arm(kFlushEvery, [this] { flush(); });
  }

  int finish() {
    process_.reset();
    record::RunEnd end;
    end.verdict = "ended";
    const Status finished = recorder_->finish(end);
    if (!finished) return fail(kSystem, finished.error().detail);
    note_cost();
    return 0;
  }

  // Beside the recording, because it differs from machine to machine.
  void note_cost() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const double all = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    const double recording = static_cast<double>(recorder_->cpu_time().ns) * 1e-9;
    const std::string path = recording_file(options_.folder, options_.node, options_.incarnation).string();
    static_cast<void>(record::write_meta(path, {{{"cpu_seconds", fmt::format("{:.6f}", all)},
                                                 {"recorder_cpu_seconds", fmt::format("{:.6f}", recording)}}}));
  }

  NodeProgramOptions options_;
  RunPaper paper_;
  node::RoomPlan room_;
  const node::RoomNode* place_ = nullptr;
  std::unique_ptr<host::Loop> loop_;
  std::unique_ptr<record::Recorder> recorder_;
  std::unique_ptr<NodeSink> sink_;
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<PlannedFaults> faults_;
  std::unique_ptr<ProcessPorts> process_;
};

}  // namespace

int run_node(const NodeProgramOptions& options) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  auto paper = read_paper(options.folder);
  if (!paper) return fail(kRefused, paper.error().detail);
  const config::ReadScenario read = config::read_scenario_file(scenario_file(options.folder).string());
  if (!read.scenario)
    return fail(kRefused, config::refusal_text(scenario_file(options.folder).string(), read.problems));
  auto room = node::plan_room(*read.scenario, {});
  if (!room) return fail(kRefused, room.error().detail);
  NodeProcess process(options, std::move(*paper), std::move(*room));
  if (const int status = process.set_up(); status != 0) return status;
  return process.run();
}

}  // namespace areal::real
