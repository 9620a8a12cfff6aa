// A judge reads the trace and says what broke an invariant; Judges hands each event to those that asked for its kind.
//
// A judge is a value: it holds no pointer into a world, and clone() gives an equal one that goes on alone. It never
// changes a run. Not thread-safe: the loop that steps the nodes calls it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/record.h"
#include "engine/port/notes.h"
#include "engine/port/trace_sink.h"
#include "sim/check/judge_setup.h"
#include "sim/check/violation.h"

namespace areal::sim {

// What an event is about: the body of a note, else the record itself.
inline const Record& subject(const port::TraceEvent& event) {
  return event.record.kind == port::Note::kKind ? event.body : event.record;
}

// Whether this writes over live weights.
constexpr bool applies(port::ComputeKind what) {
  return what == port::ComputeKind::kApply || what == port::ComputeKind::kApplyDelta;
}

// A number that a judge measured, such as the greatest staleness.
struct Measure {
  std::string_view name;
  std::uint64_t value = 0;
};

class Judge {
 public:
  virtual ~Judge() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Kinds of subject() that on_event() is called with; no others.
  [[nodiscard]] virtual std::span<const KindId> interest() const = 0;
  virtual void on_event(const port::TraceEvent& event, Violations& out) = 0;
  // The trace ended. `finished`: the run came to its end, so that what is still open stays open; false for a run that
  // was cut off, where only what needs no end may be said.
  virtual void at_end(bool finished, Violations& out);
  virtual void measure(std::vector<Measure>& out) const;
  [[nodiscard]] virtual std::unique_ptr<Judge> clone() const = 0;
};

// Puts another judge in the place of each, such as one that measures it.
class JudgeWrapper {
 public:
  virtual ~JudgeWrapper() = default;
  // A judge of the same name, interest and findings.
  virtual std::unique_ptr<Judge> around(std::unique_ptr<Judge> judge) = 0;
};

// Gives a judge its clone().
template <class Derived>
class JudgeOf : public Judge {
  friend Derived;
  JudgeOf() = default;

 public:
  [[nodiscard]] std::unique_ptr<Judge> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

// All judges of one run. A copy is a copy of their state.
class Judges {
 public:
  Judges() = default;
  Judges(const Judges& other);
  Judges& operator=(const Judges& other);
  Judges(Judges&&) = default;
  Judges& operator=(Judges&&) = default;
  ~Judges() = default;

  void add(std::unique_ptr<Judge> judge);
  void wrap(JudgeWrapper& wrapper);
  // What a rule dropped did not happen, and what the plan did to the world is no act of a node: neither is handed on.
  void on_event(const port::TraceEvent& event, Violations& out) {
    const KindId kind = subject(event).kind;
    if (kind >= kKinds) return;
    if (event.what != port::TraceWhat::kInput && event.what != port::TraceWhat::kEffect) return;
    if (places_[kind].count != 0) hand_over(places_[kind], kind, event, out);
  }
  void at_end(bool finished, Violations& out);

  [[nodiscard]] std::span<const std::unique_ptr<Judge>> all() const { return judges_; }
  // What could not be seen: "judge: no KIND in the trace", for each kind that a judge reads and that never came.
  [[nodiscard]] std::vector<std::string> blind() const;
  [[nodiscard]] std::vector<Measure> measures() const;

 private:
  // Inputs, effects and notes have numbers below this; no judge reads messages.
  static constexpr KindId kKinds = 0x0400;
  struct Place {
    std::uint16_t first = 0;  // Into order_.
    std::uint16_t count = 0;
  };
  void hand_over(Place place, KindId kind, const port::TraceEvent& event, Violations& out);
  void rebuild_places();

  std::vector<std::unique_ptr<Judge>> judges_;
  std::vector<std::uint16_t> order_;  // Judges by kind.
  std::array<Place, kKinds> places_{};
  std::vector<bool> seen_ = std::vector<bool>(kKinds);
};

// All judges of this directory.
Judges make_judges(const SetupPtr& setup);

}  // namespace areal::sim
