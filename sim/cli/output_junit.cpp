#include "sim/cli/output_junit.h"

#include <fmt/core.h>

#include "sim/check/invariants.h"

namespace areal::cli {
namespace {

// XML 1.0 has no place for control characters, not even escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

struct Case {
  std::string scenario;
  std::string half;
  std::uint64_t seed = 0;
  int exit_code = 0;
  std::string kind = {};  // "INV-1", "inconclusive", ...
  std::string body = {};
};

std::string case_xml(const Case& one) {
  const std::string half = one.half.empty() ? "" : " " + one.half;
  std::string text = fmt::format("  <testcase classname=\"{}\" name=\"{}{} seed {}\"", escaped(one.scenario),
                                 escaped(one.scenario), half, seed_text(one.seed));
  if (one.exit_code == 0) return text + "/>\n";
  text += ">\n";
  text += fmt::format(
      "    <properties><property name=\"seed\" value=\"{0}\"/><property name=\"exit_code\" value=\"{1}\"/>"
      "</properties>\n",
      seed_text(one.seed), one.exit_code);
  if (one.exit_code == 2) {
    text += fmt::format("    <skipped message=\"{}\"/>\n", escaped(one.body));
  } else {
    const char* tag = one.exit_code == 70 ? "error" : "failure";
    text += fmt::format("    <{0} type=\"{1}\" message=\"{1}\">{2}</{0}>\n", tag, escaped(one.kind), escaped(one.body));
  }
  return text + "  </testcase>\n";
}

struct Totals {
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
  void add(int code) {
    ++tests;
    skipped += code == 2 ? 1 : 0;
    errors += code == 70 ? 1 : 0;
    failures += code != 0 && code != 2 && code != 70 ? 1 : 0;
  }
};

std::string suite_xml(const std::string& scenario, const Totals& totals, double wall_s, const std::string& cases) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n<testsuite name=\"areal-sim {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuite>\n</testsuites>",
      escaped(scenario), totals.tests, totals.failures, totals.errors, totals.skipped, wall_s, cases);
}

Case case_of(const RunOutput& run) {
  Case one{.scenario = run.scenario, .half = run.half, .seed = run.seed};
  one.exit_code = run.exit_code.value_or(sim::exit_code(run.result.verdict));
  one.kind = areal::to_text(run.result.verdict);
  one.body = run.result.why;
  const auto violations = run.result.violations.all();
  if (!violations.empty()) one.kind = sim::info_of(violations.front().invariant).name;
  for (const sim::Violation& violation : violations) {
    if (!one.body.empty()) one.body += '\n';
    one.body += violation_text(violation, *run.setup);
  }
  return one;
}

Case case_of(const SeedsReport& report, std::size_t index) {
  const SeedOutcome& outcome = report.outcomes[index];
  const SeedDetail& detail = report.details[index];
  Case one{.scenario = report.scenario, .half = report.half, .seed = report.seed_of(index)};
  one.exit_code = exit_code(outcome);
  if (one.exit_code == 0) return one;  // Leaves the page of its detail alone.
  one.kind = to_text(outcome.end);
  one.body = detail.text.data();
  if (detail.violations != 0) {
    const sim::InvariantInfo& info = sim::info_of(static_cast<sim::InvariantId>(detail.invariant));
    one.kind = info.name;
    one.body = fmt::format("{} at event {}, node {}: {}\n  must hold: {}", info.name, detail.seq,
                           detail.node == 0 ? "-" : report.node_name(detail.node), detail.text.data(), info.sentence);
  }
  if (outcome.changed) one.body += "\nrun again, it came out otherwise: not deterministic";
  return one;
}

}  // namespace

bool write_junit(const std::string& path, const RunOutput& run) {
  const Case one = case_of(run);
  Totals totals;
  totals.add(one.exit_code);
  return write_report(path, suite_xml(run.scenario, totals, 0, case_xml(one)));
}

bool write_junit(const std::string& path, const SeedsReport& report) {
  Totals totals;
  std::string cases;
  for (std::size_t index = 0; index < report.outcomes.size(); ++index) {
    if (report.outcomes[index].end == SeedEnd::kNotRun) continue;
    const Case one = case_of(report, index);
    totals.add(one.exit_code);
    cases += case_xml(one);
  }
  return write_report(path, suite_xml(report.scenario, totals, report.wall_s, cases));
}

}  // namespace areal::cli
