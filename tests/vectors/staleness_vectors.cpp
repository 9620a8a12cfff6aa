// Vectors of the staleness formula and of counter events.
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "engine/proto/staleness.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace proto;

Outcome check_grid(const Json& vector) {
  Json capacities = Json::array();
  Json pending = Json::array();
  for (const Json& row : vector.at("inputs").at("rows")) {
    const StalenessLimits limits{row.at(0), row.at(1), row.at(2)};
    StalenessCounters counters;
    counters.accepted = row.at(4);
    counters.running = row.at(5);
    capacities.push_back(capacity(limits, counters, row.at(3)));
    pending.push_back(pending_limit(limits));
  }
  return expect_equal(vector.at("outputs"), {{"capacity", capacities}, {"pending_limit", pending}});
}

// "version=3" and "set_version:3" have the number behind the last sign.
std::int64_t number_in(const std::string& event) {
  const std::size_t place = event.find_first_of("=:");
  std::int64_t number = 0;
  std::from_chars(event.data() + place + 1, event.data() + event.size(), number);
  return number;
}

void apply_event(StalenessManager& manager, const std::string& event) {
  if (event == "enqueue")
    manager.enqueue();
  else if (event == "submit")
    manager.submit();
  else if (event == "accept")
    manager.accept();
  else if (event == "reject")
    manager.reject();
  else if (event.starts_with("version=") || event.starts_with("set_version:"))
    manager.set_version(number_in(event));
  else if (event.starts_with("recover="))
    manager.recover(number_in(event));
  else
    throw std::invalid_argument("unknown event " + event);
}

StalenessLimits limits_of(const Json& inputs) {
  return {inputs.at("max_concurrent_rollouts"), inputs.at("consumer_batch_size"), inputs.at("max_staleness")};
}

Outcome check_events(const Json& vector) {
  StalenessManager manager(limits_of(vector.at("inputs")));
  Json states = Json::array();
  for (const Json& event : vector.at("inputs").at("events")) {
    apply_event(manager, event.get<std::string>());
    const StalenessCounters& c = manager.counters();
    states.push_back({c.enqueued, c.accepted, c.rejected, c.running, manager.capacity()});
  }
  return expect_equal(vector.at("outputs"), {{"states", states}});
}

Outcome check_capacity(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  StalenessCounters counters;
  counters.accepted = inputs.at("accepted");
  counters.running = inputs.at("running");
  const StalenessLimits limits = limits_of(inputs);
  return expect_equal(vector.at("expected"), {{"capacity", capacity(limits, counters, inputs.at("version"))},
                                              {"pending_limit", pending_limit(limits)}});
}

Outcome check_recovery(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  StalenessManager manager(limits_of(inputs));
  manager.recover(inputs.at("recovered_version"));
  const std::int64_t accepted = manager.counters().accepted;
  for (std::int64_t left = inputs.at("running"); left > 0; --left) manager.submit();
  return expect_equal(vector.at("expected"), {{"accepted", accepted}, {"capacity", manager.capacity()}});
}

Outcome check_trace(const Json& vector) {
  StalenessManager manager(limits_of(vector.at("inputs")));
  Json states = Json::array();
  for (const Json& event : vector.at("inputs").at("events")) {
    apply_event(manager, event.get<std::string>());
    const StalenessCounters& c = manager.counters();
    states.push_back({{"event", event},
                      {"enq", c.enqueued},
                      {"run", c.running},
                      {"acc", c.accepted},
                      {"rej", c.rejected},
                      {"version", manager.version()},
                      {"capacity", manager.capacity()}});
  }
  return expect_equal(vector.at("expected"), {{"states", states}});
}

// Everything allowed at a version is admitted and accepted before the next one.
Outcome check_admissions(const Json& vector) {
  StalenessManager manager(limits_of(vector.at("inputs")));
  Json admitted = Json::array();
  for (const Json& version : vector.at("inputs").at("versions")) {
    manager.set_version(version);
    std::int64_t count = 0;
    for (; manager.capacity() > 0; ++count) manager.submit();
    for (std::int64_t i = 0; i < count; ++i) manager.accept();
    admitted.push_back(count);
  }
  return expect_equal(vector.at("expected"), {{"new_admissions", admitted}});
}

// Only some of each batch is accepted: what the age limit leaves grows without bound.
Outcome check_drift(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  constexpr std::int64_t kNoSlotLimit = 1'000'000'000'000;
  StalenessManager manager({kNoSlotLimit, inputs.at("consumer_batch_size"), inputs.at("max_staleness")});
  Json rows = Json::array();
  for (std::int64_t version = 0; version < inputs.at("steps"); ++version) {
    manager.set_version(version);
    rows.push_back(
        {{"version", version}, {"accepted", manager.counters().accepted}, {"staleness_headroom", manager.capacity()}});
    for (std::int64_t i = 0; i < inputs.at("accepted_per_step"); ++i) manager.submit(), manager.accept();
  }
  return expect_equal(vector.at("expected"), {{"rows", rows}});
}

}  // namespace

void add_staleness(std::vector<Checker>& registry) {
  registry.push_back({"staleness", "capacity_grid", check_grid});
  registry.push_back({"staleness", "events", check_events});
}

void add_spec_examples(std::vector<Checker>& registry) {
  registry.push_back({"spec_examples", "staleness.capacity", check_capacity});
  registry.push_back({"spec_examples", "staleness.recover_then_capacity", check_recovery});
  registry.push_back({"spec_examples", "staleness.trace", check_trace});
  registry.push_back({"spec_examples", "staleness.admissions_per_version", check_admissions});
  registry.push_back({"spec_examples", "staleness.dynamic_batch_drift", check_drift});
}

}  // namespace areal::vectors
