#include "sim/explore/refused_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace areal::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "#! ";
constexpr std::string_view kBetween = " | ";

std::string words_of(const config::Problem& problem) {
  return "line " + std::to_string(problem.line) + ": " + problem.path + " " + problem.text;
}

// Of "7 | PATH | WORDS".
bool read_problem(std::string_view text, config::Problem& problem) {
  const std::size_t first = text.find(kBetween);
  if (first == std::string_view::npos) return false;
  const std::size_t second = text.find(kBetween, first + kBetween.size());
  if (second == std::string_view::npos) return false;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + first, problem.line);
  if (failed != std::errc{} || end != text.data() + first) return false;
  problem.path = text.substr(first + kBetween.size(), second - first - kBetween.size());
  problem.text = text.substr(second + kBetween.size());
  return true;
}

// In words; empty if they are the same.
std::string difference(const std::vector<config::Problem>& told, const std::vector<config::Problem>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i >= told.size()) return "nothing is told of " + words_of(expected[i]);
    const bool same = told[i].line == expected[i].line && told[i].path == expected[i].path &&
                      told[i].text.find(expected[i].text) != std::string::npos;
    if (!same) return words_of(told[i]) + ", not " + words_of(expected[i]);
  }
  return told.size() == expected.size() ? std::string() : "also told: " + words_of(told[expected.size()]);
}

}  // namespace

std::vector<std::string> refused_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failed;
  fs::directory_iterator place(fs::path(directory) / "refused", failed);
  for (; !failed && place != fs::directory_iterator(); place.increment(failed)) {
    if (place->path().extension() == ".yaml") files.push_back(place->path().string());
  }
  std::ranges::stable_sort(files);
  return files;
}

Result<std::vector<config::Problem>> expected_problems(const std::string& file) {
  std::vector<config::Problem> expected;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with(kMark)) continue;
    config::Problem problem{};
    if (!read_problem(std::string_view(line).substr(kMark.size()), problem)) {
      return Error{Errc::kInvalid, file + ": not LINE | PATH | WORDS: " + line};
    }
    expected.push_back(std::move(problem));
  }
  if (expected.empty()) return Error{Errc::kInvalid, file + " does not say what must be told"};
  return expected;
}

Result<RefusedReport> check_refused_file(const std::string& file) {
  auto expected = expected_problems(file);
  if (!expected) return expected.error();
  RefusedReport report;
  report.file = file;
  report.name = fs::path(file).stem().string();
  report.source = report.name.substr(0, report.name.find('_'));
  for (char& c : report.source) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const config::ReadScenario read = config::read_scenario_file(file);
  for (const config::Problem& problem : read.problems) report.told.push_back(words_of(problem));
  report.lacks = read.scenario.has_value() ? "it is not refused" : difference(read.problems, *expected);
  report.as_named = report.lacks.empty();
  return report;
}

}  // namespace areal::sim
