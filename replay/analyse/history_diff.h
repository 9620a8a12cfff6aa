// Whether two histories are equal, and where they are not, by section, in words.
//
// Plain values; no errors.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/analyse/history.h"

namespace areal::analyse {

// What both say of one subject.
struct HistoryDifference {
  std::string subject;  // "version 11".
  std::string left;     // "attempt 2 full (peer_lost)"; "-" where that side says nothing of the subject.
  std::string right;
  bool left_may_go_on = false;  // Had the left recording gone on, it could have come to say what the right one says.
  bool right_may_go_on = false;
};

struct HistorySection {
  std::string_view name;
  std::size_t left_rows = 0;
  std::size_t right_rows = 0;
  std::vector<HistoryDifference> differences;  // All, in the order of the rows.
};

struct HistoryDiff {
  std::vector<HistorySection> sections;  // published, anchors, receipts, leases, updates.
  [[nodiscard]] bool is_equal() const;
};

// Of each section so many differences are printed.
inline constexpr std::size_t kMaxShownDifferences = 10;

// Equal exactly if `left == right`. Ports of leases that both have are numbered alike as far as that goes, so that one
// lease more, or one port used again, is one difference and does not shift the numbers after it.
HistoryDiff diff_histories(const History& left, const History& right);

// Whether the ends of truncated recordings may be all that differs; true if nothing does.
bool may_be_truncation(const HistoryDiff& diff, bool left_truncated, bool right_truncated);

// Some lines for people.
std::string to_text(const HistoryDiff& diff);

}  // namespace areal::analyse
