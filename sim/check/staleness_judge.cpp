// Recomputes the capacity of each admission and measures the age of what is consumed.
#include "sim/check/staleness_judge.h"

#include <algorithm>

namespace areal::sim {
namespace {

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX / 2 : product;
}

}  // namespace

std::span<const KindId> StalenessJudge::interest() const {
  static constexpr std::array<KindId, 5> kWanted{port::Admitted::kKind, port::GroupConsumed::kKind,
                                                 port::TrainingWorldChanged::kKind, Incarnations::kStarted,
                                                 Incarnations::kChanged};
  return kWanted;
}

std::int64_t admission_capacity(const port::Admitted& numbers) {
  const std::int64_t free_slots = std::max<std::int64_t>(1, numbers.max_concurrent) - numbers.running;
  const std::int64_t versions = numbers.staleness + static_cast<std::int64_t>(numbers.version) + 1;
  const std::int64_t allowed = saturating_product(versions, std::max<std::int64_t>(1, numbers.batch_size));
  return std::min(free_slots, allowed - (numbers.accepted + numbers.running));
}

void StalenessJudge::on_admitted(const port::TraceEvent& event, const port::Admitted& admitted, Violations& out) const {
  const std::int64_t capacity = admission_capacity(admitted);
  const std::string numbers = say(": ", admitted.running, " running, ", admitted.accepted, " accepted, version ",
                                  admitted.version, ", batch size ", admitted.batch_size, ", staleness ",
                                  admitted.staleness, ", at most ", admitted.max_concurrent, " at once");
  if (capacity <= 0) {
    Violation found = violation_at(InvariantId::kStaleHead, event,
                                   say(setup_->name_of(event.node), " admitted sample group ", admitted.group,
                                       " at capacity ", capacity, numbers));
    found.version = admitted.version;
    out.add(std::move(found));
  }
  const std::int64_t batch = std::max<std::int64_t>(1, admitted.batch_size);
  if (admitted.accepted >= saturating_product(static_cast<std::int64_t>(restored_), batch)) return;
  const std::int64_t versions = admitted.staleness + static_cast<std::int64_t>(admitted.version) + 1;
  // The same breach by the names of both documents.
  for (const InvariantId invariant : {InvariantId::kStaleRecover, InvariantId::kStaleHead}) {
    Violation found = violation_at(
        invariant, event,
        say(setup_->name_of(event.node), " admits up to ", saturating_product(versions, batch) - admitted.accepted,
            " sample groups after training went on from version ", restored_, ", where a fresh start would admit ",
            saturating_product(admitted.staleness + 1, batch), numbers));
    found.version = admitted.version;
    found.related.push_back(restored_seq_);
    out.add(std::move(found));
  }
}

void StalenessJudge::on_event(const port::TraceEvent& event, Violations& out) {
  const Record& record = subject(event);
  // Who admits begins to count anew with its process, until it is told what was restored.
  if (const auto gone = incarnations_.renewed(event); gone.has_value() && *gone == admits_) restored_ = 0;
  if (record.kind == port::TrainingWorldChanged::kKind) {
    restored_ = from_record<port::TrainingWorldChanged>(record).version;
    restored_seq_ = event.seq;
  } else if (record.kind == port::Admitted::kKind) {
    admits_ = event.node;
    on_admitted(event, from_record<port::Admitted>(record), out);
  }
  if (record.kind != port::GroupConsumed::kKind) return;
  const auto consumed = from_record<port::GroupConsumed>(record);
  const std::uint64_t age = consumed.version > consumed.oldest ? consumed.version - consumed.oldest : 0;
  ++consumed_;
  greatest_ = std::max(greatest_, age);
  if (age <= setup_->max_staleness) return;
  ++above_bound_;
  if (!setup_->enforce_staleness) return;
  Violation found = violation_at(InvariantId::kStaleBound, event,
                                 say(setup_->name_of(event.node), " trains version ", consumed.version,
                                     " on sample group ", consumed.group, " with tokens of version ", consumed.oldest,
                                     ": ", age, " versions old, the bound is ", setup_->max_staleness));
  found.level = InvariantClass::kSafety;
  found.version = consumed.version;
  out.add(std::move(found));
}

void StalenessJudge::measure(std::vector<Measure>& out) const {
  out.push_back({"groups consumed", consumed_});
  out.push_back({"greatest staleness", greatest_});
  out.push_back({"groups above the staleness bound", above_bound_});
}

}  // namespace areal::sim
