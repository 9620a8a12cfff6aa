#include "sim/cli/option_table.h"

#include <algorithm>
#include <array>

namespace areal::cli {
namespace {

constexpr std::array<CommandRow, 9> kCommands{{
    {.name = "run",
     .form = "[run] SCENARIO.yaml [options]",
     .summary = "Run a scenario under one seed, or under each seed of a range.",
     .more =
         "Without --seed a fresh seed is taken and printed before the run. The same scenario and seed give the same\n"
         "run on every machine. With --seeds every run that does not hold, and 5 % of the others, is run\n"
         "twice and must come out equal. The last line of a failure is a command that was run and failed alike.\n",
     .examples = "  areal-sim scenarios/smoke.yaml --seed 1\n"
                 "  areal-sim scenarios/failover.yaml --seed 0x2a --record failover.db\n"
                 "  areal-sim scenarios/failover.yaml --seeds 1..500 --jobs 2 --profile hostile --junit seeds.xml\n"
                 "  areal-sim scenarios/smoke.yaml --seed 1 --set work.updates=20 --set links.latency=1ms\n",
     .files_min = 1,
     .files_max = 1,
     .files_exist = true},
    {.name = "real",
     .form = "real SCENARIO.yaml [options]",
     .summary = "Run a scenario in real processes on this machine, record, merge and judge it.",
     .more =
         "Guards, gateway, trainers, engines and router run as processes over TCP and Gloo; the scenario's faults act\n"
         "on them. Every process records itself; the recordings are merged into one and judged. When it ends, also\n"
         "by Ctrl-C, nothing of it is left. Exit codes are those of a simulated run.\n",
     .examples = "  areal-sim real scenarios/real_small.yaml --backend gloo --seed 1 --record real.db\n"
                 "  areal-sim replay real.db --all-nodes\n",
     .files_min = 1,
     .files_max = 1,
     .files_exist = true},
    {.name = "replay",
     .form = "replay RUN.db [--decisions | --node PATTERN | --all-nodes]",
     .summary = "Run a recording again and compare every line.",
     .more =
         "From its seed; with --decisions from the choices that it recorded. With --node or --all-nodes there is no\n"
         "world: single nodes are given the inputs that were recorded, and their effects and states are compared;\n"
         "so recordings of real processes, one by one or merged, can be replayed too. Exit 4 if a line differs, 2 if\n"
         "the recording is truncated, 65 if it is damaged.\n",
     .examples = "  areal-sim replay failover.db\n"
                 "  areal-sim replay failover.db --all-nodes\n"
                 "  areal-sim replay run/gateway.1.db --node gateway\n",
     .files_min = 1,
     .files_max = 1,
     .files_exist = true},
    {.name = "merge",
     .form = "merge OUT.db PART.db|FOLDER...",
     .summary = "Merge the recordings of the processes of one run into one order, and judge it.",
     .more =
         "Causes come before effects, and each process keeps its own order. The parts are of one scenario and seed.\n"
         "A process that was killed left a truncated part: OUT.db is complete if the other parts show its death,\n"
         "truncated otherwise. Exit 0 if everything held, 1 or 3 for a violation, 2 if OUT.db is truncated, its run\n"
         "did not end, or a violation may come of what is missing, 65 if a part is damaged or contradicts another.\n",
     .examples = "  areal-sim merge run.db run/\n"
                 "  areal-sim merge run.db gateway.1.db trainer.0.1.db engine.0.rank.0.1.db\n",
     .files_min = 2,
     .files_max = 10'000},
    {.name = "diff",
     .form = "diff A.db B.db [--history]",
     .summary = "Say where two recordings part: the first event and field that differ, and what led to it.",
     .more =
         "With --history only what the runs came to counts: versions, anchors, receipts, port leases and updates.\n"
         "Times, event numbers, bytes, digests and the numbers of ports do not, so runs of other timing can be equal.\n"
         "Exit 0 if they are equal, 1 if they differ, 2 if one is truncated and nothing differs before its end,\n"
         "65 if one is damaged.\n",
     .examples = "  areal-sim diff monday.db tuesday.db\n"
                 "  areal-sim diff --history calm.db slow_link.db\n",
     .files_min = 2,
     .files_max = 2,
     .files_exist = true},
    {.name = "dump",
     .form = "dump RUN.db [--node PATTERN] [--kind PATTERN] [--from SEQ] [--to SEQ]",
     .summary = "Print the events of a recording as text.",
     .more = "In patterns `*` stands for any text and `?` for one character.\n",
     .examples = "  areal-sim dump failover.db --node 'engine.1.*' --kind 'version_published'\n"
                 "  areal-sim dump failover.db --from 18190 --to 18204 --decisions\n",
     .files_min = 1,
     .files_max = 1,
     .files_exist = true},
    {.name = "catalogue",
     .form = "catalogue run|list [NAME...]",
     .summary = "List the known defects, or run each half of them: the defect must be found, its twin must hold.",
     .more = "",
     .examples = "  areal-sim catalogue list\n"
                 "  areal-sim catalogue run H06 H15\n",
     .files_min = 1,
     .files_max = 1000},
    {.name = "schema",
     .form = "schema",
     .summary = "Print the JSON Schema of scenario files, for editors.",
     .more = "",
     .examples = "  areal-sim schema > scenario.schema.json\n"},
    {.name = "doctor",
     .form = "doctor",
     .summary = "Check whether this machine can run everything; exit 1 if something must be changed.",
     .more = "",
     .examples = "  areal-sim doctor\n"},
}};

constexpr std::array<OptionRow, 24> kOptions{{
    {"seed", "N", "run real catalogue", "The seed, decimal or 0x hexadecimal."},
    {"seeds", "A..B", "run", "Every seed from A to B, both included."},
    {"jobs", "J", "run", "With --seeds: so many worker processes; 1 by default."},
    {"recheck", "PERCENT", "run",
     "With --seeds: of the seeds that hold, so many are run twice and must come out equal; 5 by default."},
    {"profile", "calm|hostile", "run",
     "calm: only what the scenario says. hostile: also late, lost and doubled messages, "
     "dead ranks, slow links."},
    {"set", "KEY=VALUE", "run real", "Change one value of the scenario, such as work.updates=20. May be repeated.",
     true},
    {"half", "with_defect|without_defect", "run catalogue",
     "Of a scenario that names a defect: run it with or without."},
    {"until", "TIME|EVENT", "run", "Stop there, inconclusive: 45s of virtual time, or after event 18204."},
    {"record", "FILE", "run real", "Write a recording, by custom ending in .db."},
    {"json", "FILE", "run", "Write what came out as JSON; - is standard output."},
    {"junit", "FILE", "run", "Write what came out as JUnit XML; - is standard output."},
    {"quiet", "", "run real", "Only the result: no story, no progress."},
    {"profile-judges", "", "run", "Measure what each judge costs, and print a table."},
    {"decisions", "", "replay dump", "replay: take the recorded choices, not the seed's. dump: print choices, too."},
    {"history", "", "diff", "Compare what the runs came to, whenever it happened, instead of every line."},
    {"node", "PATTERN", "replay dump",
     "dump: only nodes, or node/protocol, that fit. replay: these nodes, each by itself."},
    {"all-nodes", "", "replay", "Every node by itself, from its recorded inputs."},
    {"backend", "gloo", "real", "What moves weights between the processes; gloo is the only one so far."},
    {"keep", "", "real", "Keep the folder of the run: each process's own recording, and logs."},
    {"kind", "PATTERN", "dump", "Only kinds of inputs, effects, messages and notes that fit."},
    {"from", "SEQ", "dump", "From this event on."},
    {"to", "SEQ", "dump", "Up to this event."},
    {"help", "", "*", "This text; after a subcommand, that of the subcommand."},
    {"version", "", "*", "The version of this program."},
}};

}  // namespace

std::span<const CommandRow> command_rows() { return kCommands; }
std::span<const OptionRow> option_rows() { return kOptions; }

const CommandRow* find_command(std::string_view name) {
  const auto rows = command_rows();
  const auto place = std::ranges::find(rows, name, &CommandRow::name);
  return place == rows.end() ? nullptr : &*place;
}

const OptionRow* find_option(std::string_view name) {
  const auto rows = option_rows();
  const auto place = std::ranges::find(rows, name, &OptionRow::name);
  return place == rows.end() ? nullptr : &*place;
}

bool applies(const OptionRow& option, std::string_view command) {
  if (option.commands == "*") return true;
  std::string_view rest = option.commands;
  while (!rest.empty()) {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, blank) == command) return true;
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  return false;
}

std::string variable_of(const OptionRow& option) {
  std::string name = "AREAL_SIM_";
  for (const char c : option.name) name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

}  // namespace areal::cli
