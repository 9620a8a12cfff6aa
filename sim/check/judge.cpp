// Hands events to the judges that asked for their kind.
#include "sim/check/judge.h"

#include "engine/base/check.h"

namespace areal::sim {

void Judge::at_end(bool /*finished*/, Violations& /*out*/) {}
void Judge::measure(std::vector<Measure>& /*out*/) const {}

Judges::Judges(const Judges& other) : order_(other.order_), places_(other.places_), seen_(other.seen_) {
  for (const auto& judge : other.judges_) judges_.push_back(judge->clone());
}

Judges& Judges::operator=(const Judges& other) {
  if (this != &other) *this = Judges(other);
  return *this;
}

void Judges::add(std::unique_ptr<Judge> judge) {
  judges_.push_back(std::move(judge));
  rebuild_places();
}

void Judges::wrap(JudgeWrapper& wrapper) {
  for (auto& judge : judges_) judge = wrapper.around(std::move(judge));
}

void Judges::rebuild_places() {
  places_ = {};
  std::size_t total = 0;
  for (const auto& judge : judges_) {
    for (const KindId kind : judge->interest()) {
      AREAL_CHECK(kind < kKinds);
      ++places_[kind].count;
      ++total;
    }
  }
  std::uint16_t next = 0;
  for (Place& place : places_) {
    place.first = next;
    next = static_cast<std::uint16_t>(next + place.count);
    place.count = 0;
  }
  order_.assign(total, 0);
  for (std::size_t i = 0; i < judges_.size(); ++i) {
    for (const KindId kind : judges_[i]->interest()) {
      Place& place = places_[kind];
      order_[place.first + place.count++] = static_cast<std::uint16_t>(i);
    }
  }
}

void Judges::hand_over(Place place, KindId kind, const port::TraceEvent& event, Violations& out) {
  seen_[kind] = true;
  for (std::size_t i = 0; i < place.count; ++i) judges_[order_[place.first + i]]->on_event(event, out);
}

void Judges::at_end(bool finished, Violations& out) {
  for (const auto& judge : judges_) judge->at_end(finished, out);
}

std::vector<std::string> Judges::blind() const {
  KindTable kinds;
  port::add_kinds(kinds);
  std::vector<std::string> found;
  for (const auto& judge : judges_) {
    for (const KindId kind : judge->interest()) {
      if (seen_[kind]) continue;
      const KindInfo* info = kinds.find(kind);
      found.push_back(say(judge->name(), ": no ", info != nullptr ? info->name : "unknown kind", " in the trace"));
    }
  }
  return found;
}

std::vector<Measure> Judges::measures() const {
  std::vector<Measure> found;
  for (const auto& judge : judges_) judge->measure(found);
  return found;
}

}  // namespace areal::sim
