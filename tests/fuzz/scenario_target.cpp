// A scenario file as a user wrote it, and changes of the command line.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/base/check.h"
#include "engine/config/scenario_yaml.h"
#include "tests/fuzz/targets.h"

namespace areal::fuzz {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

// The text up to the first zero byte is the file, each line behind it a change. Refused with reasons, or read; and what
// was read is written so that it reads back the same.
void fuzz_scenario(View input) {
  const std::string_view all(reinterpret_cast<const char*>(input.data()), input.size());
  const std::size_t zero = std::min(all.find('\0'), all.size());
  const std::string file(all.substr(0, zero));
  const std::vector<std::string> sets = lines_of(all.substr(std::min(zero + 1, all.size())));
  const config::ReadScenario read = config::read_scenario(file, "fuzzed", sets);
  AREAL_CHECK(read.scenario.has_value() == read.problems.empty());
  if (!read.scenario) {
    AREAL_CHECK(!config::refusal_text("fuzzed", read.problems).empty());
    return;
  }
  const std::string resolved = config::resolved_yaml(*read.scenario);
  const config::ReadScenario again = config::read_scenario(resolved, "fuzzed");
  AREAL_CHECK(again.scenario.has_value());
  AREAL_CHECK(config::resolved_yaml(*again.scenario) == resolved);
}

std::vector<Bytes> scenario_seeds() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"scenarios", "scenarios/delta", "scenarios/reports", "tests/data/bad_scenarios"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(AREAL_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
  }
  std::ranges::stable_sort(files);
  std::vector<Bytes> seeds;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  Bytes changed = seeds.front();
  changed.push_back(0);
  for (const char c : std::string("work.updates=20\nfaults[0].at=45s\nlinks.latency=1ms\n")) {
    changed.push_back(static_cast<std::uint8_t>(c));
  }
  seeds.push_back(changed);
  return seeds;
}

}  // namespace areal::fuzz
