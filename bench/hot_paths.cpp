// hot_paths: five paths that every run pays for, each once, for a tool that counts instructions.
//
//   hot_paths PATH     queue, digest, blocks, replay or judged
//
// What counts is done within areal_measured() alone, so that preparing is left out. Prints `PATH EVENTS CHECK`: how
// many events were treated, and a number that changes when something else was done. scripts/hot_paths.py is the gate.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "bench/phold.h"
#include "bench/scheduler/draws.h"
#include "bench/scheduler/measured.h"
#include "engine/config/scenario_yaml.h"
#include "engine/port/trace_digest.h"
#include "replay/analyse/replayer.h"
#include "replay/record/block_codec.h"
#include "sim/explore/run.h"
#include "sim/kernel/event_queue.h"
#include "tests/replay/synthetic_trace.h"

// Named for callgrind's --toggle-collect; a call of it is never a part of another function.
extern "C" [[gnu::noinline]] void areal_measured(void (*work)(void*), void* context) { work(context); }

namespace areal::bench {
namespace {

constexpr std::uint64_t kEvents = 50'000;

template <class Work>
void measured(Work work) {
  areal_measured([](void* context) { (*static_cast<Work*>(context))(); }, &work);
}

struct Done {
  std::uint64_t events = 0;
  std::uint64_t check = 0;
};

// Taking the first of 1,024 waiting events and posting another.
Done queue() {
  const ExpTable<16> increments(1e6);
  Xorshift random;
  sim::EventQueue<std::uint32_t> queue;
  std::uint32_t posted = 0;
  for (; posted < 1'024; ++posted) queue.post({increments.draw(random)}, posted);
  Done done{.events = kEvents};
  measured([&] {
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      const auto next = queue.pop();
      add_to_order(done.check, next.event);
      queue.post(next.at + Duration{increments.draw(random)}, posted++);
    }
  });
  return done;
}

std::vector<port::TraceEvent> made_events() {
  std::vector<port::TraceEvent> events;
  events.reserve(kEvents);
  Phold().run(kEvents, [&](const port::TraceEvent& event) { events.push_back(event); });
  return events;
}

// A line into the digest of a run.
Done digest() {
  const std::vector<port::TraceEvent> events = made_events();
  port::TraceDigest digest;
  measured([&] {
    for (const port::TraceEvent& event : events) digest.on_event(event);
  });
  return {events.size(), digest.digest().low};
}

// A line into a recording's block, which is not compressed: that is a library's work.
Done blocks() {
  constexpr std::uint64_t kBlock = 4096;
  const std::vector<port::TraceEvent> events = made_events();
  record::BlockEncoder encoder;
  Done done{.events = events.size()};
  measured([&] {
    for (const port::TraceEvent& event : events) {
      encoder.on_event(event);
      if (encoder.events() < kBlock) continue;
      done.check += encoder.bytes().size();
      encoder.clear();
    }
  });
  return done;
}

// A line compared with its recorded one, which is unpacked for it.
Done replay() {
  const testing::ScratchFile file("hot_paths.db");
  const std::vector<port::TraceEvent> events = made_events();
  const auto recorder = testing::open_recorder(file.path(), {.writing = record::Writing::kInline});
  for (const port::TraceEvent& event : events) recorder->on_event(event);
  AREAL_CHECK(recorder->finish({.verdict = "held", .counts = {}}).has_value());
  const auto reader = record::RunReader::open(file.path());
  AREAL_CHECK(reader.has_value());
  analyse::ReplayComparer comparer(**reader, record::BlockWords::Ahead::kNever);
  measured([&] {
    for (const port::TraceEvent& event : events) comparer.on_event(event);
    comparer.finish();
  });
  AREAL_CHECK(comparer.error().empty() && !comparer.difference());
  return {events.size(), comparer.compared()};
}

// An event of a whole run: queue, node, protocol, ports, trace, judges.
Done judged() {
  const auto read = config::read_scenario_file(AREAL_SOURCE_DIR "/scenarios/smoke.yaml");
  AREAL_CHECK(read.scenario.has_value());
  auto room = sim::build_room(*read.scenario, {});
  AREAL_CHECK(room.has_value());
  sim::RunSettings settings;
  settings.room = *room;
  Done done;
  measured([&] {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      settings.seed = seed;
      const auto result = sim::run_once(settings, nullptr);
      AREAL_CHECK(result && result->verdict == config::Verdict::kHeld);
      done.events += result->events;
      done.check ^= result->digest.low;
    }
  });
  return done;
}

int run(std::string_view path) {
  Done done;
  if (path == "queue") {
    done = queue();
  } else if (path == "digest") {
    done = digest();
  } else if (path == "blocks") {
    done = blocks();
  } else if (path == "replay") {
    done = replay();
  } else if (path == "judged") {
    done = judged();
  } else {
    std::fputs("usage: hot_paths queue|digest|blocks|replay|judged\n", stderr);
    return 64;
  }
  fmt::print("{} {} {:x}\n", path, done.events, done.check);
  return 0;
}

}  // namespace
}  // namespace areal::bench

int main(int count, char** arguments) { return areal::bench::run(count == 2 ? arguments[1] : ""); }
