#include "sim/cli/options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <cxxopts.hpp>
#include <filesystem>

#include "engine/base/text.h"
#include "sim/cli/command.h"
#include "sim/cli/option_table.h"
#include "sim/cli/recording.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program.

namespace areal::cli {
namespace {

constexpr unsigned kJobsMax = 256;
// Outcomes of a whole range lie in memory.
constexpr std::uint64_t kSeedsMax = 10'000'000;

// What is wrong with the command line, as one sentence.
struct Refusal {
  std::string text;
};

struct Given {
  std::string name;
  std::string value;
};

std::uint64_t whole_number(std::string_view option, std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error == std::errc::result_out_of_range) {
    throw Refusal{fmt::format("--{} {}: does not fit into 64 bits", option, text)};
  }
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    throw Refusal{fmt::format("--{} '{}': not a whole number; write it like 42 or 0x2a", option, text)};
  }
  return value;
}

// "5" or "5%".
unsigned percentage(std::string_view option, std::string_view text) {
  const std::string_view digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  const std::uint64_t percent = whole_number(option, digits);
  if (percent > 100) throw Refusal{fmt::format("--{} {}: must be 0 to 100 percent", option, text)};
  return static_cast<unsigned>(percent);
}

SeedRange seed_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    throw Refusal{fmt::format("--seeds '{}': not a range; write it like 1..500, or --seed for one seed", text)};
  }
  const SeedRange range{whole_number("seeds", text.substr(0, dots)), whole_number("seeds", text.substr(dots + 2))};
  if (range.first > range.last) throw Refusal{fmt::format("--seeds {}: the range is empty", text)};
  if (range.last - range.first >= kSeedsMax) {
    throw Refusal{fmt::format("--seeds {}: more than {} seeds; split the range", text, count_text(kSeedsMax))};
  }
  return range;
}

std::size_t choice(std::string_view option, std::string_view text, const std::vector<std::string_view>& words) {
  const auto place = std::ranges::find(words, text);
  if (place == words.end()) {
    std::string all;
    for (const std::string_view word : words) all += (all.empty() ? "" : " or ") + std::string(word);
    throw Refusal{fmt::format("--{} '{}': must be {}{}", option, text, all, did_you_mean(text, words))};
  }
  return static_cast<std::size_t>(place - words.begin());
}

void check_until(std::string_view text) {
  if (const auto time = parse_duration(text)) {
    if (time->ns > 0) return;
  } else if (!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    if (whole_number("until", text) > 0) return;
  }
  throw Refusal{fmt::format("--until '{}': write a virtual time such as 45s, or the number of an event", text)};
}

void check_set(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Refusal{fmt::format("--set '{}': write KEY=VALUE, such as work.updates=20", text)};
  }
}

std::string file_name(std::string_view option, std::string_view text) {
  if (text.empty()) throw Refusal{fmt::format("--{} needs the name of a file", option)};
  if (text == "-") return std::string(text);
  // Said before a run and not after it.
  const std::filesystem::path path(text);
  std::error_code problem;
  if (!path.has_filename() || std::filesystem::is_directory(path, problem)) {
    throw Refusal{fmt::format("--{} {}: is a folder; name a file in it", option, text)};
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (access(folder.c_str(), W_OK) != 0) {
    throw Refusal{fmt::format("--{} {}: {}: {}", option, text, folder.string(), std::strerror(errno))};
  }
  return std::string(text);
}

// Puts one option into `out`. REQUIRES: `given` is in the table.
void take(const Given& given, Arguments& out) {
  const std::string_view name = given.name;
  const std::string& value = given.value;
  if (name == "seed") out.seed = whole_number(name, value);
  if (name == "seeds") out.seeds = seed_range(value);
  if (name == "jobs") {
    const std::uint64_t jobs = whole_number(name, value);
    if (jobs == 0 || jobs > kJobsMax) throw Refusal{fmt::format("--jobs {}: must be 1 to {}", value, kJobsMax)};
    out.jobs = static_cast<unsigned>(jobs);
  }
  if (name == "recheck") out.recheck_percent = percentage(name, value);
  if (name == "record") out.record = file_name(name, value);
  if (name == "json") out.json = file_name(name, value);
  if (name == "junit") out.junit = file_name(name, value);
  if (name == "profile") out.profile = static_cast<sim::Profile>(choice(name, value, {"calm", "hostile"}));
  if (name == "half") {
    out.half = choice(name, value, {"with_defect", "without_defect"}) == 0 ? Half::kWithDefect : Half::kWithoutDefect;
  }
  if (name == "until") check_until(value), out.until = value;
  if (name == "set") check_set(value), out.sets.push_back(value);
  if (name == "quiet") out.quiet = true;
  if (name == "profile-judges") out.profile_judges = true;
  if (name == "decisions") out.from_decisions = true;
  if (name == "history") out.history = true;
  if (name == "keep") out.keep = true;
  if (name == "backend") choice(name, value, {"gloo"});
  if (name == "all-nodes") out.all_nodes = true;
  if (name == "node") out.node = value;
  if (name == "kind") out.kind = value;
  if (name == "from") out.from = whole_number(name, value);
  if (name == "to") out.to = whole_number(name, value);
}

std::vector<std::string_view> option_names() {
  std::vector<std::string_view> names;
  for (const OptionRow& row : option_rows()) names.push_back(row.name);
  return names;
}

// Refuses options that are not in the table, in better words than the library's.
void check_option_names(std::span<char* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return;
    if (word.size() < 2 || word[0] != '-' || word == "-h") continue;
    const std::string_view name = word.substr(word[1] == '-' ? 2 : 1);
    const std::size_t equals = name.find('=');
    const OptionRow* row = word[1] == '-' ? find_option(name.substr(0, equals)) : nullptr;
    if (row == nullptr) {
      std::string hint = did_you_mean(name.substr(0, equals), option_names());
      if (const std::size_t quote = hint.find('\''); quote != std::string::npos) hint.insert(quote + 1, "--");
      throw Refusal{fmt::format("unknown option '{}'{}", word.substr(0, word.find('=')), hint)};
    }
    if (row->value.empty() && equals != std::string_view::npos) {
      throw Refusal{fmt::format("--{} takes no value", row->name)};
    }
    if (row->value.empty() || equals != std::string_view::npos) continue;
    const bool is_last = i + 1 == words.size();
    if (is_last || std::string_view(words[i + 1]).starts_with("--")) {
      throw Refusal{fmt::format("--{} needs a value: --{} {}", row->name, row->name, row->value)};
    }
    ++i;
  }
}

struct Words {
  std::vector<Given> options;
  std::vector<std::string> files;
};

Words split(int argc, char** argv) {
  check_option_names({argv + std::min(argc, 1), argv + argc});
  cxxopts::Options options("areal-sim");
  auto add = options.add_options();
  for (const OptionRow& row : option_rows()) {
    const std::string name = row.name == "help" ? "h,help" : std::string(row.name);
    if (row.value.empty()) {
      add(name, "");
    } else {
      add(name, "", cxxopts::value<std::string>());
    }
  }
  add("words", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional("words");
  Words words;
  const cxxopts::ParseResult parsed = options.parse(argc, argv);
  for (const cxxopts::KeyValue& one : parsed.arguments()) {
    if (one.key() == "words") {
      words.files.push_back(one.value());
    } else {
      words.options.push_back({one.key(), one.value()});
    }
  }
  return words;
}

bool has(const std::vector<Given>& options, std::string_view name) {
  return std::ranges::find(options, name, &Given::name) != options.end();
}

// One seed or many, what only one run can have, and what is replayed: one node, every node or the run.
bool exclude_each_other(std::string_view a, std::string_view b) {
  const auto are = [&](std::string_view x, std::string_view y) { return (a == x && b == y) || (a == y && b == x); };
  return are("seed", "seeds") || are("record", "seeds") || are("until", "seeds") || are("node", "all-nodes") ||
         are("decisions", "all-nodes") || are("profile-judges", "seeds");
}

void check_together(const std::vector<Given>& options, const Arguments& arguments) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionRow& row = *find_option(options[i].name);
    if (!applies(row, arguments.command)) {
      throw Refusal{fmt::format("--{} does not belong to '{}'; it is an option of '{}'", row.name, arguments.command,
                                row.commands)};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (options[j].name == options[i].name && !row.repeatable && !row.value.empty()) {
        throw Refusal{fmt::format("--{} is given twice", row.name)};
      }
      if (!exclude_each_other(options[i].name, options[j].name)) continue;
      throw Refusal{fmt::format("--{} and --{} cannot go together", options[j].name, options[i].name)};
    }
  }
  if (has(options, "jobs") && !arguments.seeds) throw Refusal{"--jobs needs --seeds A..B: one run is one process"};
  if (has(options, "recheck") && !arguments.seeds) throw Refusal{"--recheck needs --seeds A..B: one run is no sample"};
  if (arguments.command == "replay" && arguments.from_decisions && !arguments.node.empty()) {
    throw Refusal{"--node and --decisions cannot go together: a node by itself decides nothing"};
  }
  if (arguments.from > arguments.to) throw Refusal{"--from lies behind --to"};
}

// Whatever the command line does not say and does not exclude.
void add_environment(std::string_view command, std::vector<Given>& options) {
  const std::vector<Given> said = options;
  std::vector<Given> sets;
  for (const OptionRow& row : option_rows()) {
    if (row.commands == "*" || !applies(row, command)) continue;
    const std::string variable = variable_of(row);
    const char* found = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): before any thread.
    if (found == nullptr || *found == '\0') continue;
    const std::string value = found;
    if (row.repeatable) {
      for (std::size_t from = 0; from <= value.size();) {
        const std::size_t end = std::min(value.find(';', from), value.size());
        if (end > from) sets.push_back({std::string(row.name), value.substr(from, end - from)});
        from = end + 1;
      }
      continue;
    }
    const bool excluded = std::ranges::any_of(
        options, [&](const Given& one) { return one.name == row.name || exclude_each_other(one.name, row.name); });
    const bool needs_seeds = row.name == "jobs" || row.name == "recheck";
    if (excluded || (needs_seeds && !has(options, "seeds"))) continue;
    if (row.value.empty() && choice(row.name, value, {"0", "1"}) == 0) continue;
    options.push_back({std::string(row.name), value});
  }
  options.insert(options.begin(), sets.begin(), sets.end());  // Later changes win, so those of the command line do.
}

void warn_of_unknown_variables() {
  std::vector<std::string> names;
  for (const OptionRow& row : option_rows()) names.push_back(variable_of(row));
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (!name.starts_with("AREAL_SIM_") || std::ranges::find(known, name) != known.end()) continue;
    fmt::print(stderr, "areal-sim: {} is no variable of this program{}; it is ignored\n", name,
               did_you_mean(name, known));
  }
}

// Files of the same folder that could have been meant.
std::string file_hint(const std::filesystem::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == path.extension()) names.push_back(entry.path().filename().string());
  }
  std::ranges::stable_sort(names);
  return did_you_mean(path.filename().string(), std::vector<std::string_view>(names.begin(), names.end()));
}

void check_file(const std::string& name) {
  std::error_code error;
  const auto status = std::filesystem::status(name, error);
  if (std::filesystem::is_directory(status)) throw Refusal{fmt::format("{}: is a folder, not a file", name)};
  if (!std::filesystem::exists(status)) throw Refusal{fmt::format("{}: no such file{}", name, file_hint(name))};
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_rows()) names.push_back(row.name);
  return names;
}

// The first word is a subcommand, or a scenario.
void take_command(Words& words, Arguments& out) {
  const std::string first = words.files.empty() ? std::string() : words.files.front();
  if (find_command(first) != nullptr) {
    out.command = first;
    words.files.erase(words.files.begin());
    return;
  }
  if (first.empty()) return;
  const bool looks_like_file = first.find_first_of("./") != std::string::npos || std::filesystem::exists(first);
  if (looks_like_file) return;
  throw Refusal{fmt::format("'{}' is neither a subcommand nor a file{}", first, did_you_mean(first, command_names()))};
}

void check_files(const Arguments& arguments) {
  const CommandRow& row = *find_command(arguments.command);
  if (arguments.files.size() < row.files_min || arguments.files.size() > row.files_max) {
    throw Refusal{fmt::format("write: areal-sim {}", row.form)};
  }
  if (row.name == "catalogue") {
    const std::string& what = arguments.files.front();
    if (what == "run" || what == "list") return;
    throw Refusal{fmt::format("catalogue '{}': must be run or list{}", what, did_you_mean(what, {"run", "list"}))};
  }
  if (!row.files_exist) return;
  for (const std::string& file : arguments.files) {
    check_file(file);
    const bool takes_scenario = row.name == "run" || row.name == "real";
    if (takes_scenario && file.ends_with(".db")) {
      throw Refusal{fmt::format("{}: is a recording; write: areal-sim replay {}", file, file)};
    }
    if (!takes_scenario && (file.ends_with(".yaml") || file.ends_with(".yml"))) {
      throw Refusal{fmt::format("{}: is a scenario; '{}' wants a recording", file, row.name)};
    }
  }
}

ParsedArguments parse(int argc, char** argv) {
  Words words = split(argc, argv);
  Arguments out;
  out.program = argc > 0 ? argv[0] : "areal-sim";
  if (has(words.options, "version")) {
    fmt::print("{}\n", program_version());
    return {};
  }
  const bool wants_help = has(words.options, "help");
  const bool has_words = !words.files.empty();
  if (!wants_help && !has_words) throw Refusal{"no scenario given; write: areal-sim SCENARIO.yaml"};
  take_command(words, out);
  if (wants_help) {
    fmt::print("{}", has_words ? help_text(*find_command(out.command)) : help_text());
    return {};
  }
  out.files = std::move(words.files);
  warn_of_unknown_variables();
  add_environment(out.command, words.options);
  for (const Given& given : words.options) take(given, out);
  check_together(words.options, out);
  check_files(out);
  return {std::move(out), 0};
}

}  // namespace

ParsedArguments parse_arguments(int argc, char** argv) {
  std::string text;
  try {
    return parse(argc, argv);
  } catch (const Refusal& refusal) {
    text = refusal.text;
  } catch (const cxxopts::exceptions::exception& error) {
    text = error.what();
  }
  fmt::print(stderr, "areal-sim: {}\n(areal-sim --help says what there is)\n", text);
  return {std::nullopt, kBadUsage};
}

}  // namespace areal::cli
