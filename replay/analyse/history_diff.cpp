#include "replay/analyse/history_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "engine/port/notes.h"
#include "replay/analyse/lease_ports.h"

namespace areal::analyse {

namespace {

// Of one subject so many equal values at the start, and values from the first other one on, are printed.
constexpr std::size_t kMaxAlike = 3;
constexpr std::size_t kMaxValues = 4;

// What one row says of its subject.
struct Saying {
  std::string text;
  std::size_t fixed = std::string::npos;  // Under way: what comes after so many characters may still change.
};
using Sayings = std::vector<Saying>;

bool may_become(const Saying& now, const Saying& later) {
  if (now.fixed == std::string::npos) return now.text == later.text;
  return later.text.starts_with(std::string_view(now.text).substr(0, now.fixed));
}

// Whether a recording that goes on after `now` could say `later`: rows are only added, in any place if they are sorted
// by what they say, else behind.
bool may_become(const Sayings& now, const Sayings& later, bool sorted) {
  std::size_t place = 0;
  for (const Saying& saying : now) {
    while (sorted && place < later.size() && !may_become(saying, later[place])) ++place;
    if (place == later.size() || !may_become(saying, later[place])) return false;
    ++place;
  }
  return true;
}

struct Run {
  std::string text;
  std::size_t times = 0;
  bool operator==(const Run&) const = default;
};

std::vector<Run> runs_of(const Sayings& sayings) {
  std::vector<Run> runs;
  for (const Saying& saying : sayings) {
    if (runs.empty() || runs.back().text != saying.text) runs.push_back({saying.text, 0});
    ++runs.back().times;
  }
  return runs;
}

std::string joined(const std::vector<Run>& runs, std::size_t alike) {
  if (runs.empty()) return "-";
  const std::size_t first = alike > kMaxAlike ? alike : 0;
  const std::size_t end = std::min(runs.size(), std::max(first, alike) + kMaxValues);
  std::vector<std::string> parts;
  if (first > 0) parts.push_back(fmt::format("({} alike)", first));
  for (std::size_t i = first; i < end; ++i) {
    parts.push_back(runs[i].times == 1 ? runs[i].text : fmt::format("{} ({} times)", runs[i].text, runs[i].times));
  }
  if (first == runs.size()) parts.emplace_back("-");
  if (end < runs.size()) parts.push_back(fmt::format("({} more)", runs.size() - end));
  return fmt::format("{}", fmt::join(parts, "; "));
}

HistoryDifference difference(std::string subject, const Sayings& left, const Sayings& right, bool sorted) {
  const std::vector<Run> left_runs = runs_of(left);
  const std::vector<Run> right_runs = runs_of(right);
  const auto parting = std::ranges::mismatch(left_runs, right_runs);
  const auto alike = static_cast<std::size_t>(parting.in1 - left_runs.begin());
  return {.subject = std::move(subject),
          .left = joined(left_runs, alike),
          .right = joined(right_runs, alike),
          .left_may_go_on = may_become(left, right, sorted),
          .right_may_go_on = may_become(right, left, sorted)};
}

// ---- What is particular to each section ----

// Epochs are said only where they are not all the same: most runs have one.
std::string epoch_text(Epoch epoch, bool with_epoch) { return with_epoch ? fmt::format("epoch {} ", epoch) : ""; }

struct PublishedWords {
  static constexpr std::string_view kName = "published";
  static constexpr bool kSorted = false;
  static auto key(const PublishedRow& row) { return row.version; }
  static std::string subject(const PublishedRow& row) { return fmt::format("version {}", row.version); }
  static Saying say(const PublishedRow& row, bool with_epoch) {
    return {fmt::format("{}attempt {} {} ({})", epoch_text(row.epoch, with_epoch), row.attempt, row.mode, row.reason)};
  }
};

struct AnchorWords {
  static constexpr std::string_view kName = "anchors";
  static constexpr bool kSorted = false;
  static auto key(const AnchorRow& row) { return row.version; }
  static std::string subject(const AnchorRow& row) { return fmt::format("anchor at version {}", row.version); }
  static Saying say(const AnchorRow& row, bool with_epoch) {
    return {fmt::format("{}attempt {} ({})", epoch_text(row.epoch, with_epoch), row.attempt, row.reason)};
  }
};

struct ReceiptWords {
  static constexpr std::string_view kName = "receipts";
  static constexpr bool kSorted = true;
  static auto key(const ReceiptRow& row) {
    return std::tuple(std::string_view(row.kind), row.subject, std::string_view(row.role));
  }
  static std::string subject(const ReceiptRow& row) {
    const bool of_batch = row.kind == areal::to_text(port::ReceiptKind::kDrain);
    return fmt::format("{} receipt of {} {}, {}", row.kind, of_batch ? "batch" : "version", row.subject, row.role);
  }
  static Saying say(const ReceiptRow& row, bool /*with_epoch*/) {
    return {fmt::format("count {} holders {}", row.count, row.holders)};
  }
};

struct LeaseWords {
  static constexpr std::string_view kName = "leases";
  static constexpr bool kSorted = false;
  static auto key(const LeaseRow& row) { return lease_key(row); }
  static std::string subject(const LeaseRow& row) { return fmt::format("{} on host {}", row.holder, row.host.value); }
  static Saying say(const LeaseRow& row, bool /*with_epoch*/) {
    Saying saying{fmt::format("port {}: {}", row.port, fmt::join(row.states, ", "))};
    const bool ended = !row.states.empty() && row.states.back() == areal::to_text(port::LeaseState::kReleased);
    if (!ended) saying.fixed = saying.text.size();
    saying.text += fmt::format(" (incarnation {})", row.incarnation);
    return saying;
  }
};

struct UpdateWords {
  static constexpr std::string_view kName = "updates";
  static constexpr bool kSorted = false;
  static auto key(const UpdateRow& row) { return std::tuple(row.version, row.attempt); }
  static std::string subject(const UpdateRow& row) {
    return fmt::format("version {} attempt {}", row.version, row.attempt);
  }
  static Saying say(const UpdateRow& row, bool with_epoch) {
    Saying saying{fmt::format("{}{} ({}) ", epoch_text(row.epoch, with_epoch), row.mode, row.reason)};
    if (row.outcome.empty()) saying.fixed = saying.text.size();
    saying.text += row.outcome.empty() ? "never ended" : row.outcome;
    return saying;
  }
};

// ---- Sections ----

// The rows from `from` on that have `key`.
template <class Words, class Row, class Key>
std::span<const Row> rows_of(const std::vector<Row>& rows, std::size_t from, const Key& key) {
  std::size_t end = from;
  while (end < rows.size() && Words::key(rows[end]) == key) ++end;
  return std::span(rows).subspan(from, end - from);
}

// Calls `visit(left rows, right rows)` for each key that either has, in order.
template <class Words, class Row, class Visit>
void each_key(const std::vector<Row>& left, const std::vector<Row>& right, Visit&& visit) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() || j < right.size()) {
    const bool from_left = j == right.size() || (i < left.size() && Words::key(left[i]) <= Words::key(right[j]));
    const auto key = Words::key(from_left ? left[i] : right[j]);
    const std::span<const Row> left_rows = rows_of<Words>(left, i, key);
    const std::span<const Row> right_rows = rows_of<Words>(right, j, key);
    i += left_rows.size();
    j += right_rows.size();
    visit(left_rows, right_rows);
  }
}

template <class Row>
bool epochs_differ(std::span<const Row> left, std::span<const Row> right) {
  if constexpr (requires(const Row& row) { row.epoch; }) {
    const Epoch first = left.empty() ? right.front().epoch : left.front().epoch;
    const auto is_other = [first](const Row& row) { return row.epoch != first; };
    return std::ranges::any_of(left, is_other) || std::ranges::any_of(right, is_other);
  } else {
    return false;
  }
}

template <class Words, class Row>
HistorySection diff_section(const std::vector<Row>& left, const std::vector<Row>& right) {
  HistorySection section{Words::kName, left.size(), right.size(), {}};
  each_key<Words>(left, right, [&](std::span<const Row> left_rows, std::span<const Row> right_rows) {
    if (std::ranges::equal(left_rows, right_rows)) return;
    const bool with_epoch = epochs_differ(left_rows, right_rows);
    Sayings left_sayings;
    Sayings right_sayings;
    for (const Row& row : left_rows) left_sayings.push_back(Words::say(row, with_epoch));
    for (const Row& row : right_rows) right_sayings.push_back(Words::say(row, with_epoch));
    const Row& one = left_rows.empty() ? right_rows.front() : left_rows.front();
    section.differences.push_back(difference(Words::subject(one), left_sayings, right_sayings, Words::kSorted));
  });
  return section;
}

// A copy, so that ports can be numbered for this comparison.
HistorySection diff_leases(std::vector<LeaseRow> left, std::vector<LeaseRow> right) {
  number_ports_alike(left, right);
  return diff_section<LeaseWords>(left, right);
}

}  // namespace

bool HistoryDiff::is_equal() const {
  return std::ranges::all_of(sections, [](const HistorySection& section) { return section.differences.empty(); });
}

HistoryDiff diff_histories(const History& left, const History& right) {
  return {.sections = {diff_section<PublishedWords>(left.published, right.published),
                       diff_section<AnchorWords>(left.anchors, right.anchors),
                       diff_section<ReceiptWords>(left.receipts, right.receipts),
                       diff_leases(left.leases, right.leases), diff_section<UpdateWords>(left.updates, right.updates)}};
}

bool may_be_truncation(const HistoryDiff& diff, bool left_truncated, bool right_truncated) {
  return std::ranges::all_of(diff.sections, [&](const HistorySection& section) {
    return std::ranges::all_of(section.differences, [&](const HistoryDifference& one) {
      return (left_truncated && one.left_may_go_on) || (right_truncated && one.right_may_go_on);
    });
  });
}

std::string to_text(const HistoryDiff& diff) {
  std::string text;
  for (const HistorySection& section : diff.sections) {
    const std::size_t count = section.differences.size();
    const std::string rows = section.left_rows == section.right_rows
                                 ? fmt::format("{}", section.left_rows)
                                 : fmt::format("{} | {}", section.left_rows, section.right_rows);
    text += fmt::format("{:<10} {:<12} {}\n", section.name, rows,
                        count == 0 ? "equal" : fmt::format("{} differ{}", count, count == 1 ? "s" : ""));
    for (std::size_t i = 0; i < std::min(count, kMaxShownDifferences); ++i) {
      const HistoryDifference& one = section.differences[i];
      text += fmt::format("  {}: {} | {}\n", one.subject, one.left, one.right);
    }
    if (count > kMaxShownDifferences) text += fmt::format("  and {} more\n", count - kMaxShownDifferences);
  }
  return text + (diff.is_equal() ? "equal up to time\n" : "the histories differ\n");
}

}  // namespace areal::analyse
