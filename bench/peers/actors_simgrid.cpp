// SLEEPERS and PINGPONG in SimGrid, with the draws of bench/scheduler: prints `CASE ns-per-event events` of processor
// time. An event is one sleep, or one message; SimGrid solves its network model for each message.
//
//   actors_simgrid sleepers COUNT EVENTS [SimGrid options, as --cfg=contexts/factory:raw]
//   actors_simgrid pingpong EVENTS [SimGrid options]
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>

#include "bench/scheduler/draws.h"
#include "bench/scheduler/measured.h"

namespace {

namespace sg4 = simgrid::s4u;
using areal::bench::ExpTable;
using areal::bench::Stopwatch;
using areal::bench::Xorshift;

void sleep_often(std::uint64_t seed, std::uint64_t times, const ExpTable<>* naps) {
  Xorshift random(seed);
  for (std::uint64_t i = 0; i < times; ++i) {
    sg4::this_actor::sleep_for(1.0 + static_cast<double>(naps->draw(random)) * 1e-9);
  }
}

void play(sg4::Mailbox* mine, sg4::Mailbox* theirs, std::uint64_t times, bool is_first) {
  static int ball = 0;
  for (std::uint64_t i = 0; i < times; ++i) {
    if (is_first) theirs->put(&ball, 1);
    mine->get<int>();
    if (!is_first) theirs->put(&ball, 1);
  }
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

void run_and_print(sg4::Engine& engine, const std::string& name, std::uint64_t events) {
  const Stopwatch watch;
  engine.run();
  std::printf("%s %.3f %llu\n", name.c_str(), watch.ns() / static_cast<double>(events),
              static_cast<unsigned long long>(events));
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("contexts/stack-size:16");
  const std::string kind = argc > 1 ? argv[1] : "";
  auto* const zone = sg4::create_full_zone("zone");
  sg4::Host* const left = zone->create_host("left", 1e9);
  sg4::Host* const right = zone->create_host("right", 1e9);
  const sg4::Link* const link = zone->create_link("link", 1e10)->set_latency(1e-6)->seal();
  zone->add_route(left->get_netpoint(), right->get_netpoint(), nullptr, nullptr, {sg4::LinkInRoute(link)}, true);
  zone->seal();
  const ExpTable<> naps(1e9);
  if (kind == "sleepers" && argc == 4) {
    const std::uint64_t count = number(argv[2]);
    const std::uint64_t times = number(argv[3]) / count;
    for (std::uint64_t i = 0; i < count; ++i) sg4::Actor::create("sleeper", left, sleep_often, i + 1, times, &naps);
    run_and_print(engine, "simgrid-sleepers-" + std::string(argv[2]), times * count);
  } else if (kind == "pingpong" && argc == 3) {
    const std::uint64_t times = number(argv[2]) / 2;
    auto* const a = sg4::Mailbox::by_name("a");
    auto* const b = sg4::Mailbox::by_name("b");
    sg4::Actor::create("first", left, play, a, b, times, true);
    sg4::Actor::create("second", right, play, b, a, times, false);
    run_and_print(engine, "simgrid-pingpong", 2 * times);
  } else {
    return 64;
  }
  return 0;
}
