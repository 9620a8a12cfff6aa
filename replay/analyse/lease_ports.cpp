#include "replay/analyse/lease_ports.h"

#include <algorithm>

namespace areal::analyse {

namespace {

// New numbers of one side's ports.
class PortNumbers {
 public:
  // 0 if it has none yet.
  [[nodiscard]] std::uint64_t find(const LeaseRow& row) const {
    const auto place =
        std::ranges::find_if(known_, [&](const Known& one) { return one.host == row.host && one.port == row.port; });
    return place == known_.end() ? 0 : place->number;
  }
  void set(const LeaseRow& row, std::uint64_t number) { known_.push_back({row.host, row.port, number}); }

 private:
  struct Known {
    HostId host;
    std::uint64_t port = 0;
    std::uint64_t number = 0;
  };
  std::vector<Known> known_;
};

// The numbers of both sides: a pair of new ports gets one number; a new port that meets a known one gets its own.
class PortMatch {
 public:
  void meet(const LeaseRow& left, const LeaseRow& right) {
    const bool left_known = left_.find(left) != 0;
    const bool right_known = right_.find(right) != 0;
    if (left_known && right_known) return;
    const std::uint64_t number = next(left.host);
    if (!left_known) left_.set(left, number);
    if (!right_known) right_.set(right, number);
  }
  void number_left(std::vector<LeaseRow>& rows) { number(rows, left_); }
  void number_right(std::vector<LeaseRow>& rows) { number(rows, right_); }

 private:
  struct Last {
    HostId host;
    std::uint64_t number = 0;
  };

  std::uint64_t next(HostId host) {
    auto place = std::ranges::find(last_, host, &Last::host);
    if (place == last_.end()) place = last_.insert(place, {host, 0});
    return ++place->number;
  }
  void number(std::vector<LeaseRow>& rows, PortNumbers& numbers) {
    for (LeaseRow& row : rows) {
      if (numbers.find(row) == 0) numbers.set(row, next(row.host));
      row.port = numbers.find(row);
    }
  }

  PortNumbers left_, right_;
  std::vector<Last> last_;
};

}  // namespace

void number_ports_alike(std::vector<LeaseRow>& left, std::vector<LeaseRow>& right) {
  PortMatch ports;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() && j < right.size()) {
    const auto left_key = lease_key(left[i]);
    const auto right_key = lease_key(right[j]);
    if (left_key == right_key) ports.meet(left[i], right[j]);
    // Both move past a pair; past the end of one side's leases of a key, the other side alone.
    if (left_key <= right_key) ++i;
    if (right_key <= left_key) ++j;
  }
  ports.number_left(left);
  ports.number_right(right);
}

}  // namespace areal::analyse
