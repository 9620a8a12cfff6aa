// Looks up and renders the registry of invariants.
#include "sim/check/invariants.h"

#include "engine/base/check.h"

namespace areal::sim {
namespace {

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

bool is_among(std::string_view name, std::string_view list) {
  while (!list.empty()) {
    const std::size_t blank = list.find(' ');
    if (same_name(name, list.substr(0, blank))) return true;
    if (blank == std::string_view::npos) return false;
    list.remove_prefix(blank + 1);
  }
  return false;
}

std::string_view class_text(InvariantClass level) {
  switch (level) {
    case InvariantClass::kSafety:
      return "safety";
    case InvariantClass::kLiveness:
      return "liveness";
    case InvariantClass::kReported:
      return "reported";
  }
  return "?";
}

void add_row(std::string& text, const InvariantInfo& row) {
  text.append("| ").append(row.name).append(" | ").append(row.sentence).append(" | ");
  if (!row.judge.empty()) {
    text.append("`").append(row.judge).append("` | ").append(class_text(row.level)).append(" | ");
    text.append(std::to_string(exit_code(row.level))).append(" | ");
  }
  text.append(row.aliases).append(" |\n");
}

}  // namespace

const InvariantInfo& info_of(InvariantId id) {
  const auto rows = all_invariants();
  AREAL_CHECK(static_cast<std::size_t>(id) < rows.size());
  return rows[static_cast<std::size_t>(id)];
}

std::optional<InvariantId> find_invariant(std::string_view name) {
  const auto rows = all_invariants();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (same_name(name, rows[i].name) || is_among(name, rows[i].aliases)) return static_cast<InvariantId>(i);
  }
  return std::nullopt;
}

std::string render_invariants() {
  std::string text =
      "# Invariants\n\n"
      "Made from the table in `sim/check/invariant_table.cpp`; a test compares the two. To write this file again:\n"
      "`AREAL_WRITE_DOCS=1 build/release/tests/unit/unit_test --gtest_filter='Invariants.*'`.\n\n"
      "A judge reads the trace only. Safety: something wrong has happened, exit 1. Liveness: something right has not\n"
      "happened in time, exit 3; a proven cycle of waits is safety. Reported: a number, which is safety where a\n"
      "scenario enforces it. Any of the names and aliases may be used in `expect.invariant`.\n\n"
      "## Judged\n\n"
      "| name | must hold | judge | kind | exit | aliases |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const InvariantInfo& row : all_invariants()) {
    if (!row.judge.empty()) add_row(text, row);
  }
  text +=
      "\n## Not judged yet\n\nNothing watches these: a run that says \"held\" says nothing about them.\n\n"
      "| name | must hold | aliases |\n| --- | --- | --- |\n";
  for (const InvariantInfo& row : all_invariants()) {
    if (row.judge.empty()) add_row(text, row);
  }
  return text;
}

}  // namespace areal::sim
