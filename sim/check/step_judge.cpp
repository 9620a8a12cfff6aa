// Compares what trainers post for one step.
#include "sim/check/step_judge.h"

#include "sim/check/group_ids.h"

namespace areal::sim {

std::span<const KindId> StepJudge::interest() const {
  static constexpr std::array<KindId, 6> kWanted{port::PostBatch::kKind,  port::StepTrained::kKind,
                                                 port::AbortGroup::kKind, port::TrainingWorldChanged::kKind,
                                                 Incarnations::kStarted,  Incarnations::kChanged};
  return kWanted;
}

void StepJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  last_ = event;
  if (const auto gone = incarnations_.renewed(event)) courses_.erase(*gone);
  if (record.kind == port::PostBatch::kKind) {
    const auto batch = from_record<port::PostBatch>(record);
    if (!is_training_world(batch.group)) return;
    if (group_ != GroupId{} && batch.group != group_) close(event, out);
    group_ = batch.group;
    Course& course = courses_[event.node];
    course.node = event.node;
    course.seq = event.seq;
    course.marks.push_back((static_cast<std::uint64_t>(batch.kind) << 32) | batch.part);
    if (differs(course)) close(event, out);
  } else if (record.kind == port::StepTrained::kKind) {
    const auto trained = from_record<port::StepTrained>(record);
    version_ = trained.version;
    step_ = trained.step;
    Course& course = courses_[event.node];
    course.node = event.node;
    course.seq = event.seq;
    course.over = true;
    const auto done = std::ranges::count_if(courses_, [](const auto& entry) { return entry.value.over; });
    if (differs(course) || static_cast<std::uint32_t>(done) == setup_->trainers()) close(event, out);
  } else if (record.kind == port::TrainingWorldChanged::kKind) {
    close(event, out);
    group_ = {};  // Ranks meet in another one from now on; one that leaves all out may end the step before it is seen.
  } else if (record.kind == port::AbortGroup::kKind) {
    if (from_record<port::AbortGroup>(record).group == group_) close(event, out);
  }
}

bool StepJudge::differs(const Course& course) const {
  return std::ranges::any_of(courses_, [&](const auto& entry) { return !fit(course, entry.value); });
}

void StepJudge::close(const port::TraceEvent& event, Violations& out) {
  std::vector<Course> courses;
  for (const auto& [node, course] : courses_) courses.push_back(course);
  const OddOnes odd = find_odd_ones(courses);
  for (const Course* course : odd.found) {
    Violation found = violation_at(
        InvariantId::kInv6, event,
        say(setup_->name_of(course->node), " posted ", course->marks.size(), " group operations for a step",
            course->over ? " and ended it, " : ", ", setup_->name_of(odd.rule->node), ", as most, posted ",
            odd.rule->marks.size(), course->over ? ": the others wait for it" : ""));
    found.node = course->node;
    if (version_ != 0) found.version = version_;
    found.step = step_;
    found.related.push_back(course->seq);
    out.add(std::move(found));
  }
  courses_.clear();
}

void StepJudge::at_end(bool /*finished*/, Violations& out) { close(last_, out); }

}  // namespace areal::sim
