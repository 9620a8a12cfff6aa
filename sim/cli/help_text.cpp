// The words of --help, made from the table of subcommands and options.
#include <fmt/core.h>

#include "sim/cli/option_table.h"

namespace areal::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kTextColumn = 38;

constexpr std::string_view kExitCodes =
    "exit codes\n"
    "    0  everything held\n"
    "    1  a safety property was violated, or the run was not what its scenario expects\n"
    "    2  inconclusive: a budget ended, a recording is truncated\n"
    "    3  no progress although nothing stood in its way (liveness)\n"
    "    4  not deterministic: the same run came out otherwise\n"
    "   64  bad usage or a bad scenario; nothing was started\n"
    "   65  a recording is damaged\n"
    "   70  areal-sim itself failed\n"
    "  130  interrupted\n"
    "Of several seeds the code that says most is given: 1 over 4 over 70 over 3 over 2 over 0.\n";

// Breaks `text` into lines that end before kWidth, the later ones beginning at kTextColumn.
std::string folded(std::string_view text) {
  std::string out;
  std::size_t column = kTextColumn;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    if (column > kTextColumn && column + 1 + blank > kWidth) {
      out += '\n' + std::string(kTextColumn, ' ');
      column = kTextColumn;
    }
    if (column > kTextColumn) out += ' ', ++column;
    out += text.substr(0, blank);
    column += blank;
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return out + "\n";
}

std::string option_lines(std::string_view command) {
  std::string text;
  for (const OptionRow& row : option_rows()) {
    if (!applies(row, command)) continue;
    const std::string head = fmt::format("  --{} {}", row.name, row.value);
    text += fmt::format("{:<{}}", head, kTextColumn - 1) + " " + folded(row.text);
  }
  return text;
}

}  // namespace

std::string help_text(const CommandRow& command) {
  std::string text = fmt::format("areal-sim {}\n  {}\n", command.form, command.summary);
  if (!command.more.empty()) text += fmt::format("\n{}", command.more);
  return text +
         fmt::format("\noptions\n{}\nexamples\n{}\n{}", option_lines(command.name), command.examples, kExitCodes);
}

std::string help_text() {
  std::string text =
      "areal-sim runs scenarios of weight transfer between trainers and rollout engines in a simulated machine room,\n"
      "judges what happens, and replays and compares recordings.\n\n"
      "Start here:\n"
      "  areal-sim scenarios/smoke.yaml --seed 1     watch four ranks move three versions, one of them dying\n"
      "  areal-sim scenarios/canary.yaml --seed 1    see how a failure reads\n"
      "  areal-sim doctor                            check this machine\n";
  for (const CommandRow& command : command_rows()) {
    text += fmt::format("\nareal-sim {}\n  {}\n", command.form, command.summary);
    if (!command.more.empty()) text += std::string(command.more);
    text += option_lines(command.name).substr(0, option_lines(command.name).find("  --help"));
    text += fmt::format("  for example:\n{}", command.examples);
  }
  text += "\neverywhere\n" + option_lines("schema");
  text +=
      "Every option can also stand in the environment, as in AREAL_SIM_SEED=7 or AREAL_SIM_QUIET=1; several changes\n"
      "in AREAL_SIM_SET are separated by semicolons. The command line comes first.\n\n";
  return text + std::string(kExitCodes);
}

}  // namespace areal::cli
