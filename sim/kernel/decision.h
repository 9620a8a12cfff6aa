// Every choice that the simulator makes, drawn from named streams, counted, reported, and repeatable from a recording.
//
// A stream is named after what it decides and for whom ("net.delay.3-7"), so that a new choice somewhere moves no other
// one. A choice is a number below a bound; 0 is always the harmless one (no fault, the least delay, first in order), so
// a recording with more zeros is a simpler run. The n-th choice of a stream depends on the run's seed, the stream's
// name and n alone: forked with Rng::fork, then mixed with n.
//
// Forced: recorded choices are returned instead, by stream name and ordinal, and the first that no longer fits is
// named.
//
// A value without pointers; the sink is given with each call. Not thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/state.h"
#include "engine/port/trace_sink.h"

namespace areal::sim {

// Printed as "name", "name.a" or "name.a-b"; 0 is "none". The name itself must not end in such a suffix.
struct StreamKey {
  std::string_view name;
  NodeId a;
  NodeId b;
};
std::string to_text(const StreamKey& key);

struct Odds {
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
};

// Choices as a recording holds them: `Decision::stream` is an index into `streams`.
struct RecordedDecisions {
  std::vector<std::string> streams;
  std::vector<port::Decision> decisions;
};

// What a forced run gets where the recording has nothing to say.
enum class Beyond : std::uint8_t {
  kHarmless,  // 0: what a shrinker wants.
  kDraw,      // What the seed says: a replay that goes on where the recording ends.
};

class Decisions {
 public:
  explicit Decisions(std::uint64_t seed = 0) : seed_(seed) {}

  // Uniform in [0, bound). A bound of 1 is no choice: nothing is counted or reported. REQUIRES: bound > 0.
  std::uint64_t draw_below(const StreamKey& key, std::uint64_t bound, port::TraceSink& sink);
  // True with probability numerator / denominator, never for choice 0. Odds of 0 or of 1 and more are no choice.
  // REQUIRES: denominator > 0.
  bool draw_chance(const StreamKey& key, Odds odds, port::TraceSink& sink);

  // From now on choices come from `recorded`. REQUIRES: nothing was drawn yet.
  void force(const RecordedDecisions& recorded, Beyond beyond);
  // The first choice that did not fit the recording, in words; empty if all did.
  [[nodiscard]] const std::string& misfit() const { return misfit_; }
  // The first stream of the recording whose choices were not all asked for, in words; empty if there is none.
  [[nodiscard]] std::string leftover() const;

  // Reports the names of all streams made so far: for a sink that joins later.
  void announce(port::TraceSink& sink) const;

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }

  // The seed, the streams and their counts. What is forced is not part of it: load() keeps it.
  void save(StateWriter& writer) const;
  bool load(StateReader& reader);

 private:
  // Streams of one name, dense by node: rows[a][b] is the stream's index plus 1, or 0.
  struct Family {
    std::string name;
    std::vector<std::vector<std::uint32_t>> rows;
  };
  struct Stream {
    std::uint32_t family = 0;
    std::uint32_t forced = 0;  // Index into forced_ plus 1, or 0.
    NodeId a;
    NodeId b;
    std::uint64_t seed = 0;
    std::uint64_t drawn = 0;
  };
  struct Choice {
    std::uint64_t bound = 0;
    std::uint64_t chosen = 0;
  };
  struct ForcedStream {
    std::string name;
    std::vector<Choice> choices;
  };

  std::uint32_t family_of(std::string_view name);
  std::uint32_t stream_of(const StreamKey& key, port::TraceSink& sink);
  std::uint32_t make_stream(std::uint32_t family, NodeId a, NodeId b);
  [[nodiscard]] std::string name_of(const Stream& stream) const;
  std::uint64_t forced_choice(const Stream& stream, std::uint64_t bound, std::uint64_t drawn);
  void report_misfit(const Stream& stream, const std::string& why);

  std::uint64_t seed_ = 0;
  std::uint64_t total_ = 0;
  std::vector<Family> families_;
  std::vector<Stream> streams_;
  bool is_forced_ = false;
  Beyond beyond_ = Beyond::kHarmless;
  std::vector<ForcedStream> forced_;  // Sorted by name.
  std::string misfit_;
};

}  // namespace areal::sim
