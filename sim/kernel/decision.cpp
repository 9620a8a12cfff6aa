#include "sim/kernel/decision.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/rng.h"

namespace areal::sim {
namespace {

// Rows are dense by node: a damaged snapshot must not make one row of 2^64.
constexpr std::uint64_t kMaxNode = 1 << 20;

}  // namespace

std::string to_text(const StreamKey& key) {
  std::string text(key.name);
  if (key.a.value != 0 || key.b.value != 0) text += "." + std::to_string(key.a.value);
  if (key.b.value != 0) text += "-" + std::to_string(key.b.value);
  return text;
}

std::uint64_t Decisions::draw_below(const StreamKey& key, std::uint64_t bound, port::TraceSink& sink) {
  AREAL_CHECK(bound > 0);
  if (bound == 1) return 0;
  const std::uint32_t index = stream_of(key, sink);
  Stream& stream = streams_[index];
  Rng rng(mix_words(stream.seed, stream.drawn));
  std::uint64_t chosen = rng.draw_below(bound);
  if (is_forced_) chosen = forced_choice(stream, bound, chosen);
  const port::Decision decision{.stream = index, .ordinal = stream.drawn, .bound = bound, .chosen = chosen};
  ++stream.drawn;
  ++total_;
  sink.on_decision(decision);
  return chosen;
}

bool Decisions::draw_chance(const StreamKey& key, Odds odds, port::TraceSink& sink) {
  AREAL_CHECK(odds.denominator > 0);
  if (odds.numerator == 0) return false;
  if (odds.numerator >= odds.denominator) return true;
  // The last `numerator` choices are the ones where it happens, so that choice 0 is not.
  return draw_below(key, odds.denominator, sink) >= odds.denominator - odds.numerator;
}

std::uint64_t Decisions::forced_choice(const Stream& stream, std::uint64_t bound, std::uint64_t drawn) {
  const std::uint64_t otherwise = beyond_ == Beyond::kDraw ? drawn : 0;
  if (stream.forced == 0) {
    report_misfit(stream, "is not in the recording");
    return otherwise;
  }
  const std::vector<Choice>& choices = forced_[stream.forced - 1].choices;
  if (stream.drawn >= choices.size()) {
    report_misfit(stream, "has " + std::to_string(choices.size()) + " choices in the recording and is asked for more");
    return otherwise;
  }
  const Choice& choice = choices[stream.drawn];
  if (choice.bound != bound) {
    report_misfit(stream, "has the bound " + std::to_string(choice.bound) + " at choice " +
                              std::to_string(stream.drawn) + " in the recording and is asked with " +
                              std::to_string(bound));
  }
  return choice.chosen < bound ? choice.chosen : otherwise;
}

void Decisions::report_misfit(const Stream& stream, const std::string& why) {
  if (misfit_.empty()) misfit_ = "stream " + name_of(stream) + " " + why;
}

void Decisions::force(const RecordedDecisions& recorded, Beyond beyond) {
  AREAL_CHECK(total_ == 0);
  is_forced_ = true;
  beyond_ = beyond;
  forced_.clear();
  for (const std::string& name : recorded.streams) forced_.push_back({name, {}});
  for (const port::Decision& decision : recorded.decisions) {
    AREAL_CHECK(decision.stream < forced_.size());
    std::vector<Choice>& choices = forced_[decision.stream].choices;
    if (choices.size() <= decision.ordinal) choices.resize(decision.ordinal + 1);
    choices[decision.ordinal] = {decision.bound, decision.chosen};
  }
  std::ranges::stable_sort(forced_, {}, &ForcedStream::name);
}

std::string Decisions::leftover() const {
  for (std::size_t i = 0; i < forced_.size(); ++i) {
    const auto same = [i](const Stream& stream) { return stream.forced == i + 1; };
    const auto stream = std::ranges::find_if(streams_, same);
    const std::uint64_t drawn = stream == streams_.end() ? 0 : stream->drawn;
    if (drawn < forced_[i].choices.size()) {
      return "stream " + forced_[i].name + " has " + std::to_string(forced_[i].choices.size()) +
             " choices in the recording and was asked for " + std::to_string(drawn);
    }
  }
  return {};
}

void Decisions::announce(port::TraceSink& sink) const {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    sink.on_stream(static_cast<std::uint32_t>(i), name_of(streams_[i]));
  }
}

std::string Decisions::name_of(const Stream& stream) const {
  return to_text(StreamKey{families_[stream.family].name, stream.a, stream.b});
}

std::uint32_t Decisions::family_of(std::string_view name) {
  const auto place = std::ranges::find(families_, name, &Family::name);
  const auto index = static_cast<std::uint32_t>(place - families_.begin());
  if (place == families_.end()) families_.push_back({std::string(name), {}});
  return index;
}

std::uint32_t Decisions::stream_of(const StreamKey& key, port::TraceSink& sink) {
  const std::uint32_t family = family_of(key.name);
  std::vector<std::vector<std::uint32_t>>& rows = families_[family].rows;
  const bool is_known = key.a.value < rows.size() && key.b.value < rows[key.a.value].size();
  if (is_known && rows[key.a.value][key.b.value] != 0) return rows[key.a.value][key.b.value] - 1;
  const std::uint32_t index = make_stream(family, key.a, key.b);
  sink.on_stream(index, name_of(streams_[index]));
  return index;
}

std::uint32_t Decisions::make_stream(std::uint32_t family, NodeId a, NodeId b) {
  AREAL_CHECK(a.value <= kMaxNode);
  AREAL_CHECK(b.value <= kMaxNode);
  const auto index = static_cast<std::uint32_t>(streams_.size());
  std::vector<std::vector<std::uint32_t>>& rows = families_[family].rows;
  if (rows.size() <= a.value) rows.resize(a.value + 1);
  if (rows[a.value].size() <= b.value) rows[a.value].resize(b.value + 1);
  rows[a.value][b.value] = index + 1;

  Stream stream{.family = family, .a = a, .b = b};
  const std::string name = name_of(stream);
  stream.seed = Rng(seed_).fork(name).seed();
  const auto forced = std::ranges::lower_bound(forced_, name, {}, &ForcedStream::name);
  if (forced != forced_.end() && forced->name == name) {
    stream.forced = static_cast<std::uint32_t>(forced - forced_.begin()) + 1;
  }
  streams_.push_back(stream);
  return index;
}

void Decisions::save(StateWriter& writer) const {
  writer.value(seed_);
  writer.value(static_cast<std::uint64_t>(families_.size()));
  for (const Family& family : families_) writer.value(std::vector<char>(family.name.begin(), family.name.end()));
  writer.value(static_cast<std::uint64_t>(streams_.size()));
  for (const Stream& stream : streams_) {
    writer.value(stream.family);
    writer.value(stream.a);
    writer.value(stream.b);
    writer.value(stream.drawn);
  }
}

bool Decisions::load(StateReader& reader) {
  families_.clear();
  streams_.clear();
  total_ = 0;
  std::uint64_t count = 0;
  reader.value(seed_);
  reader.value(count);
  for (; count > 0 && reader.ok(); --count) {
    std::vector<char> name;
    reader.value(name);
    families_.push_back({std::string(name.begin(), name.end()), {}});
  }
  reader.value(count);
  for (; count > 0 && reader.ok(); --count) {
    Stream stream;
    std::uint64_t drawn = 0;
    reader.value(stream.family);
    reader.value(stream.a);
    reader.value(stream.b);
    reader.value(drawn);
    if (!reader.ok() || stream.family >= families_.size()) return false;
    if (stream.a.value > kMaxNode || stream.b.value > kMaxNode) return false;
    const std::uint32_t index = make_stream(stream.family, stream.a, stream.b);
    streams_[index].drawn = drawn;
    total_ += drawn;
  }
  return reader.ok();
}

}  // namespace areal::sim
