#include "bench/scheduler/cases.h"

#include <charconv>

#include "bench/scheduler/churn.h"
#include "bench/scheduler/hold.h"
#include "bench/scheduler/phold.h"
#include "bench/scheduler/pingpong.h"
#include "bench/scheduler/reference_queue.h"
#include "bench/scheduler/sleepers.h"
#include "sim/kernel/event_queue.h"
#include "sim/world/world_event.h"

namespace areal::sim {

// The event of a real run in HOLD.
inline void set_number(WorldEvent& event, std::uint64_t number) { event.number = number; }
inline std::uint64_t number_of(const WorldEvent& event) { return event.number; }

}  // namespace areal::sim

namespace areal::bench {
namespace {

template <class Event>
Measured hold(const Case& what, Through through, Hook hook) {
  if (through == Through::kReference) return run_hold<ReferenceQueue<Event>, Event>(what.size, what.events, hook);
  return run_hold<sim::EventQueue<Event>, Event>(what.size, what.events, hook);
}

Measured phold(const Case& what, Through through, Hook hook) {
  if (through == Through::kReference) {
    return run_phold<ReferenceQueue<PholdEvent>>(what.size, what.each, what.events, hook);
  }
  return run_phold<sim::EventQueue<PholdEvent>>(what.size, what.each, what.events, hook);
}

Measured sleepers(const Case& what, Through through, Hook hook) {
  if (through == Through::kReference) return run_sleepers<ReferenceQueue<SleeperEvent>>(what.size, what.events, hook);
  return run_sleepers<sim::EventQueue<SleeperEvent>>(what.size, what.events, hook);
}

Measured pingpong(const Case& what, Through through, Hook hook) {
  if (through == Through::kReference) return run_pingpong<ReferenceQueue<PingEvent>>(what.size, what.events, hook);
  return run_pingpong<sim::EventQueue<PingEvent>>(what.size, what.events, hook);
}

Measured churn(const Case& what, Through through, Hook hook) {
  if (through == Through::kReference) return run_churn<ReferenceQueue<ChurnEvent>>(what.size, hook);
  return run_churn<sim::EventQueue<ChurnEvent>>(what.size, hook);
}

constexpr std::uint64_t kEvents = 2'000'000;

Case make_case(std::string_view kind, std::uint64_t size, std::uint64_t each) {
  const std::string count = std::to_string(size);
  if (kind == "hold") return {"hold-" + count, size, 1, kEvents, hold<HoldEvent>};
  if (kind == "world") return {"world-" + count, size, 1, kEvents, hold<sim::WorldEvent>};
  if (kind == "phold") return {"phold-" + count + "x" + std::to_string(each), size, each, kEvents, phold};
  if (kind == "sleepers") return {"sleepers-" + count, size, 1, kEvents, sleepers};
  if (kind == "pingpong") return {"pingpong", 1, 1, kEvents, pingpong};
  if (kind == "pairs") return {"pairs-" + count, size, 1, kEvents, pingpong};
  if (kind == "churn") return {"churn-" + count, size, 1, 0, churn};
  return {};
}

}  // namespace

std::vector<Case> all_cases(bool quick) {
  std::vector<Case> cases;
  for (const std::uint64_t size : {64, 1024, 16'384, 262'144, 1'048'576}) cases.push_back(make_case("hold", size, 1));
  cases.push_back(make_case("world", 256, 1));
  for (const auto& [size, each] : {std::pair{64, 16}, {1024, 1}, {16'384, 1}, {16'384, 16}, {65'536, 16}}) {
    cases.push_back(make_case("phold", static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(each)));
  }
  for (const std::uint64_t size : {1024, 10'000, 100'000, 1'000'000}) cases.push_back(make_case("sleepers", size, 1));
  cases.push_back(make_case("pingpong", 1, 1));
  cases.push_back(make_case("pairs", 1000, 1));
  cases.push_back(make_case("churn", quick ? 1 : 40, 1));
  if (quick) {
    std::erase_if(cases, [](const Case& one) { return one.size * one.each > 20'000; });
    for (Case& one : cases) one.events = 60'000;
  }
  return cases;
}

Case find_case(std::string_view name) {
  const std::size_t dash = name.find('-');
  const std::string_view kind = name.substr(0, dash);
  if (dash == std::string_view::npos) return make_case(kind, 1, 1);
  std::uint64_t size = 0;
  std::uint64_t each = 1;
  const char* const end = name.data() + name.size();
  const auto [after, wrong] = std::from_chars(name.data() + dash + 1, end, size);
  if (wrong != std::errc{} || size == 0) return {};
  if (after != end && (*after != 'x' || std::from_chars(after + 1, end, each).ptr != end)) return {};
  return make_case(kind, size, each);
}

}  // namespace areal::bench
