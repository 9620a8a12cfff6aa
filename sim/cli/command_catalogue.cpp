// `areal-sim catalogue run|list [NAME...]`: every known failure, with its defect and without; wrong files are refused.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/scenario_yaml.h"
#include "sim/cli/command.h"
#include "sim/explore/catalogue.h"
#include "sim/explore/refused_files.h"

namespace areal::cli {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr int kAllAsNamed = 0;
constexpr int kNotAsNamed = 1;

std::string name_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

// "GAP-06" and "gap06" are one name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '-') text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return text;
}

// A whole name, or its beginning up to an underscore: "h03_check_then_lock", "H03", "GAP-06".
bool is_asked_for(const std::string& file, const std::vector<std::string>& names) {
  const std::string own = name_of(file);
  return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
           return own == plain(name) || own.starts_with(plain(name) + "_");
         });
}

int list(const std::vector<std::string>& files, const std::vector<std::string>& refused) {
  for (const std::string& file : files) {
    const auto read = config::read_scenario_file(file);
    if (!read.scenario) {
      fmt::print(stderr, "{}", config::refusal_text(file, read.problems));
      return kBadUsage;
    }
    fmt::print("{:<36} {:<6} {}\n", read.scenario->name, read.scenario->defect_seat, read.scenario->why);
  }
  for (const std::string& file : refused) fmt::print("{:<36} {:<6} {}\n", name_of(file), "refuse", "A wrong file.");
  return kAllAsNamed;
}

// One line, and below it what shows the finding again.
void print(const sim::CatalogueReport& report, const Arguments& arguments) {
  std::string line = fmt::format("{:<7} {:<34} {:<6}", report.source, report.name, report.seat);
  if (arguments.half != Half::kWithoutDefect) {
    line += report.found ? "  with: found as named: " : "  with: NOT FOUND: ";
    line += report.with + ";";
  }
  if (arguments.half != Half::kWithDefect) {
    line += report.clean ? "  without: clean" : "  without: NOT CLEAN: ";
    if (!report.without.empty()) line += report.clean ? " (" + report.without + ")" : report.without;
  }
  while (line.back() == ';') line.pop_back();
  fmt::print("{}\n", line);
  if (arguments.quiet || arguments.half == Half::kWithoutDefect) return;
  if (!report.message.empty()) fmt::print("        {}\n", report.message);
  if (!report.witness.empty()) fmt::print("        in the order: {}\n", report.witness);
}

// Wrong files: the product refuses each with all that it says, and nothing is started.
int run_refused(const std::vector<std::string>& files, const Arguments& arguments) {
  std::size_t as_named = 0;
  for (const std::string& file : files) {
    const auto report = sim::check_refused_file(file);
    if (!report) {
      fmt::print(stderr, "{}\n", report.error().detail);
      return kBadUsage;
    }
    as_named += report->as_named ? 1 : 0;
    fmt::print("{:<7} {:<34} {:<6}  {}\n", report->source, report->name, "refuse",
               report->as_named ? "told as named" : "NOT AS NAMED: " + report->lacks);
    if (arguments.quiet) continue;
    for (const std::string& line : report->told) fmt::print("        {}\n", line);
  }
  if (!files.empty()) fmt::print("{} wrong files: {} refused as named\n", files.size(), as_named);
  return as_named == files.size() ? kAllAsNamed : kNotAsNamed;
}

int run(const std::vector<std::string>& files, const Arguments& arguments) {
  std::size_t found = 0;
  std::size_t clean = 0;
  for (const std::string& file : files) {
    const auto report = sim::run_catalogue_entry(file, arguments.seed.value_or(kSeed));
    if (!report) {
      fmt::print(stderr, "{}: {}\n", file, report.error().detail);
      return kBadUsage;
    }
    print(*report, arguments);
    found += report->found ? 1 : 0;
    clean += report->clean ? 1 : 0;
  }
  if (!files.empty()) fmt::print("{} entries: {} found as named, {} clean without\n", files.size(), found, clean);
  const bool found_all = arguments.half == Half::kWithoutDefect || found == files.size();
  const bool clean_all = arguments.half == Half::kWithDefect || clean == files.size();
  return found_all && clean_all ? kAllAsNamed : kNotAsNamed;
}

}  // namespace

int command_catalogue(const Arguments& arguments) {
  std::vector<std::string> names = arguments.files;
  const std::string verb = names.front();
  names.erase(names.begin());
  const std::string directory = sim::find_scenarios(arguments.program);
  if (directory.empty()) {
    fmt::print(stderr, "areal-sim catalogue: no folder scenarios with reports or gaps here or beside the program\n");
    return kBadUsage;
  }
  std::vector<std::string> files = sim::catalogue_files(directory);
  std::vector<std::string> refused = sim::refused_files(directory);
  for (auto* all : {&files, &refused}) {
    std::erase_if(*all, [&](const std::string& file) { return !is_asked_for(file, names); });
  }
  if (files.empty() && refused.empty()) {
    fmt::print(stderr, "areal-sim catalogue: nothing is called so; `areal-sim catalogue list` shows what there is\n");
    return kBadUsage;
  }
  if (verb == "list") return list(files, refused);
  const int ran = run(files, arguments);
  return ran == kBadUsage ? ran : std::max(ran, run_refused(refused, arguments));
}

}  // namespace areal::cli
