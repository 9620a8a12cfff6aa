// Prints a run as a story while it happens: one line an update, one a fault, one a recovery.
//
// Lines fit a terminal of 100 columns. Nothing here is decided: it reads the trace like any other sink.
#pragma once
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "sim/explore/run.h"

namespace areal::cli {

class Story final : public port::EventSink {
 public:
  // `out` may be null: then it only counts.
  Story(const sim::Room& room, std::FILE* out) : room_(room), out_(out) {}

  void print_head();

  void on_event(const port::TraceEvent& event) override;

  struct Totals {
    std::uint64_t full = 0;
    std::uint64_t delta = 0;
    std::uint64_t failed_attempts = 0;
    std::uint64_t groups_accepted = 0;
    std::uint64_t groups_rejected = 0;
    std::uint64_t groups_admitted = 0;
    std::uint64_t groups_consumed = 0;
    std::uint64_t segments = 0;
    std::uint64_t tokens = 0;
    std::uint64_t resubmitted = 0;
    std::uint64_t asked_again = 0;
    std::uint64_t most_staleness = 0;
    std::uint64_t leases = 0;
    std::uint64_t receipts = 0;
    std::uint64_t faults = 0;
  };
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  void on_note(const port::TraceEvent& event);
  void on_message(const port::TraceEvent& event);
  void on_process(const port::TraceEvent& event, const port::ProcessChanged& said);
  void on_pair(const port::TraceEvent& event, const port::PairChanged& said);
  void on_published(const port::TraceEvent& event, const port::VersionPublished& said);
  void count(const Record& note);
  void line(Instant at, const std::string& text);
  [[nodiscard]] std::string name(NodeId node) const;

  const sim::Room& room_;
  std::FILE* out_;
  Totals totals_;
  Instant update_began_;
  Version updating_ = 0;
  Version published_ = 0;
  Epoch training_epoch_ = 0;                              // The newest that an update was asked for under.
  Epoch published_epoch_ = 0;                             // That of the last publication.
  std::map<std::uint64_t, std::uint64_t> seen_requests_;  // Update requests at the gateway, by request id.
};

}  // namespace areal::cli
