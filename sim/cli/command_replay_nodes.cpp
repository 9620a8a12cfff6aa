// `areal-sim replay RUN.db --node NAME` and `--all-nodes`: steps the protocols of single nodes again, without a world.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "engine/base/text.h"
#include "replay/analyse/dump.h"
#include "replay/analyse/node_replayer.h"
#include "sim/cli/command.h"
#include "sim/cli/loaded.h"
#include "sim/cli/open_recording.h"
#include "sim/cli/recording.h"
#include "sim/fault/rule.h"

namespace areal::cli {
namespace {

// Kinds that the rules of a run match: effects of these may be changed, put off or taken away before they are logged.
Result<std::vector<KindId>> ruled_kinds(const Loaded& loaded) {
  const sim::Room& room = *loaded.room;
  std::vector<config::RuleSpec> specs = loaded.defect_rules;
  specs.insert(specs.end(), room.scenario.rules.begin(), room.scenario.rules.end());
  std::vector<KindId> kinds;
  for (const config::RuleSpec& spec : specs) {
    const auto rule = sim::compile_rule(spec, {room.kinds, room.directory});
    if (!rule) return rule.error();
    kinds.push_back(rule->match.kind().info->id);
  }
  return kinds;
}

std::vector<node::ProtocolBox> initial_protocols(node::Node node) {
  node.start(1);
  return {node.slots().begin(), node.slots().end()};
}

bool are_of_room(const record::RunReader& reader, const sim::Room& room) {
  return std::ranges::all_of(reader.nodes(), [&room](const record::NodeRow& row) {
    return row.id.value >= 1 && row.id.value <= room.nodes.size() && room.node(row.id).name == row.name;
  });
}

// Those that the command line asks for; empty, with a word on stderr, if there are none.
std::vector<analyse::NodeToReplay> nodes_asked(const Arguments& arguments, const record::RunReader& reader,
                                               const sim::Room& room, const std::vector<KindId>& kinds) {
  const std::vector<node::Node> built = sim::build_nodes(room);
  std::vector<analyse::NodeToReplay> nodes;
  std::vector<std::string_view> names;
  for (const record::NodeRow& row : reader.nodes()) {
    names.push_back(row.name);
    if (!arguments.all_nodes && !analyse::matches_pattern(arguments.node, row.name)) continue;
    nodes.push_back({row.id, initial_protocols(built[row.id.value - 1]), kinds});
  }
  if (nodes.empty()) {
    fmt::print(stderr, "areal-sim: no node of {} fits '{}'{}\n", arguments.files.front(), arguments.node,
               did_you_mean(arguments.node, names));
  }
  return nodes;
}

void print_table(const record::RunReader& reader, const std::vector<analyse::NodeReplay>& replays) {
  fmt::print("{:<22} {:>12} {:>10} {:>10} {:>10} {:>8} {:>7} {:>4}\n", "node", "incarnations", "inputs", "effects",
             "states", "by rules", "unseen", "cut");
  const auto print_row = [](std::string_view name, const analyse::NodeReplay& row, std::string_view verdict) {
    fmt::print("{:<22} {:>12} {:>10} {:>10} {:>10} {:>8} {:>7} {:>4}  {}\n", name, row.incarnations,
               count_text(row.inputs), count_text(row.effects), count_text(row.states), row.ruled, row.unseen, row.cut,
               verdict);
  };
  analyse::NodeReplay total;
  std::size_t different = 0;
  for (const analyse::NodeReplay& replay : replays) {
    const bool differs = replay.difference.has_value();
    print_row(reader.names().name(replay.id), replay,
              differs ? fmt::format("DIFFERENT at event {}", replay.difference->seq) : "equal");
    different += differs ? 1 : 0;
    total.incarnations += replay.incarnations;
    total.inputs += replay.inputs;
    total.effects += replay.effects;
    total.states += replay.states;
    total.ruled += replay.ruled;
    total.unseen += replay.unseen;
    total.cut += replay.cut;
  }
  const std::string verdict = different == 0 ? "EQUAL" : fmt::format("{} DIFFERENT", different);
  print_row(fmt::format("{} nodes", replays.size()), total, verdict);
}

void print_difference(const record::RunReader& reader, const analyse::NodeReplay& replay) {
  const analyse::NodeDifference& difference = *replay.difference;
  fmt::print("{} differs at event {}\n  recorded  {}\n  replayed  {}\n",
             reader.names().name(replay.id, difference.slot), difference.seq, difference.recorded, difference.replayed);
  for (const analyse::ValueDifference& field : difference.fields) {
    fmt::print("  field     {:<24} {} | {}\n", field.name, field.left, field.right);
  }
}

[[noreturn]] void fail_check(const char* condition, const char* file, int line) {
  throw std::runtime_error(
      fmt::format("a protocol failed its own check in the replay: {} at {}:{}", condition, file, line));
}

}  // namespace

int command_replay_nodes(const Arguments& arguments) {
  const std::string& file = arguments.files.front();
  int code = 0;
  const auto reader = open_recording_file(file, &code);
  if (reader == nullptr) return code;
  const auto loaded = load_text(reader->info().scenario_text, file, half_of(reader->info().half));
  if (!loaded) return kBadUsage;
  if (!are_of_room(*reader, *loaded->room)) {
    fmt::print(stderr, "areal-sim: {}: its nodes are not those of its scenario\n", file);
    return kBadUsage;
  }
  const auto kinds = ruled_kinds(*loaded);
  if (!kinds) {
    fmt::print(stderr, "areal-sim: {}: {}\n", file, kinds.error().detail);
    return kBadUsage;
  }
  std::vector<analyse::NodeToReplay> nodes = nodes_asked(arguments, *reader, *loaded->room, *kinds);
  if (nodes.empty()) return kBadUsage;
  set_check_handler(fail_check);
  const auto replays = analyse::replay_nodes(*reader, std::move(nodes));
  if (!replays) {
    fmt::print(stderr, "areal-sim: {}: {}\n", file, replays.error().detail);
    return kDamaged;
  }
  const bool truncated = reader->state() == record::RecordingState::kTruncated;
  fmt::print("{}   replay {}   scenario {}   node by node{}\n", program_version(), file, reader->info().scenario_name,
             truncated ? "   (truncated recording)" : "");
  print_table(*reader, *replays);
  bool different = false;
  for (const analyse::NodeReplay& replay : *replays) {
    if (!replay.difference) continue;
    print_difference(*reader, replay);
    different = true;
  }
  if (different) return kNondeterministic;
  return truncated ? kTruncated : 0;
}

}  // namespace areal::cli
