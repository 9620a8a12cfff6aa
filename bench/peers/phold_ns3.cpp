// PHOLD and PINGPONG in ns-3, with the draws of bench/scheduler: prints `CASE ns-per-event events` of processor time.
//
//   phold_ns3 SCHEDULER phold COUNT STARTS EVENTS      SCHEDULER: Map, Heap, PriorityQueue or Calendar
//   phold_ns3 SCHEDULER pingpong EVENTS
#include <ns3/core-module.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/scheduler/draws.h"
#include "bench/scheduler/measured.h"
#include "bench/scheduler/phold_actor.h"

namespace {

using areal::bench::ExpTable;
using areal::bench::PholdActor;
using areal::bench::PholdNext;
using areal::bench::Stopwatch;

class Phold {
 public:
  Phold(std::size_t count, std::uint64_t events) : actors_(areal::bench::make_phold(count)), left_(events) {}

  void start(std::size_t starts) {
    for (std::uint32_t i = 0; i < actors_.size(); ++i) {
      for (std::size_t j = 0; j < starts; ++j) {
        const std::int64_t after = 1000 + delays_.draw(actors_[i].random);
        ns3::Simulator::ScheduleWithContext(i, ns3::NanoSeconds(after), &Phold::happen, this, i);
      }
    }
  }

 private:
  void happen(std::uint32_t actor) {
    if (left_-- == 0) {
      ns3::Simulator::Stop();
      return;
    }
    const PholdNext next = areal::bench::phold_step(actors_, actor, delays_);
    ns3::Simulator::ScheduleWithContext(next.actor, ns3::NanoSeconds(next.after_ns), &Phold::happen, this, next.actor);
  }

  const ExpTable<> delays_{1000};
  std::vector<PholdActor> actors_;
  std::uint64_t left_;
};

class PingPong {
 public:
  explicit PingPong(std::uint64_t events) : left_(events) {}

  void receive(std::uint32_t actor, std::uint32_t value) {
    if (left_-- == 0) {
      ns3::Simulator::Stop();
      return;
    }
    received_[actor] += value;
    const std::uint32_t to = actor ^ 1U;
    ns3::Simulator::ScheduleWithContext(to, ns3::NanoSeconds(1000), &PingPong::receive, this, to, value + 1);
  }

 private:
  std::uint64_t received_[2] = {0, 0};
  std::uint64_t left_;
};

void run_and_print(const std::string& name, std::uint64_t events) {
  const Stopwatch watch;
  ns3::Simulator::Run();
  std::printf("%s %.3f %llu\n", name.c_str(), watch.ns() / static_cast<double>(events),
              static_cast<unsigned long long>(events));
  ns3::Simulator::Destroy();
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 2 ? argv[2] : "";
  if (!(kind == "phold" && argc == 6) && !(kind == "pingpong" && argc == 4)) return 64;
  ns3::ObjectFactory scheduler;
  scheduler.SetTypeId(std::string("ns3::") + argv[1] + "Scheduler");
  ns3::Simulator::SetScheduler(scheduler);
  const std::uint64_t events = number(argv[argc - 1]);
  if (kind == "phold") {
    Phold phold(number(argv[3]), events);
    phold.start(number(argv[4]));
    run_and_print("ns3-" + std::string(argv[1]) + "-phold-" + argv[3] + "x" + argv[4], events);
  } else {
    PingPong pingpong(events);
    pingpong.receive(0, 0);
    run_and_print("ns3-" + std::string(argv[1]) + "-pingpong", events);
  }
  return 0;
}
