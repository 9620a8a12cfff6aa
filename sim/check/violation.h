// What a judge found: which invariant, where, when, at which version, in plain words, and the events that show it.
//
// Values; not thread-safe.
#pragma once
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/ids.h"
#include "engine/base/time.h"
#include "engine/port/trace_sink.h"
#include "sim/check/invariants.h"

namespace areal::sim {

struct Violation {
  InvariantId invariant = InvariantId::kInv1;
  InvariantClass level = InvariantClass::kSafety;
  std::uint64_t seq = 0;  // The event at which it was seen.
  Instant at;
  NodeId node;  // Who is to blame; 0 if nobody in particular.
  std::optional<Version> version;
  std::optional<std::uint64_t> step;  // Training step.
  std::string message;
  std::vector<std::uint64_t> related;  // seqs of the events that led to it: where a cause chain starts.
};

// A violation at `event`, to blame on its node, with the invariant's own class.
Violation violation_at(InvariantId invariant, const port::TraceEvent& event, std::string message);

// All violations of a run in the order of finding. One of the same invariant, node and version as an earlier one is
// counted and not kept.
class Violations {
 public:
  void add(Violation violation);
  [[nodiscard]] std::span<const Violation> all() const { return all_; }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] std::uint64_t repeated() const { return repeated_; }
  void clear() { all_.clear(), repeated_ = 0; }

 private:
  std::vector<Violation> all_;
  std::uint64_t repeated_ = 0;
};

// ---- Words of messages ----

inline void append_word(std::string& text, std::string_view word) { text.append(word); }
// Not a plain bool: a literal would turn into one.
void append_word(std::string& text, std::same_as<bool> auto yes) { text.append(yes ? "yes" : "no"); }
template <std::integral T>
  requires(!std::same_as<T, bool>)
void append_word(std::string& text, T number) {
  text.append(std::to_string(number));
}
template <class Tag>
void append_word(std::string& text, Id<Tag> id) {
  text.append(std::to_string(id.value));
}
// Eight hex digits are enough to tell two digests of one message apart.
inline void append_word(std::string& text, const Digest128& digest) { text.append(to_hex(digest), 0, 8); }

// say("engine ", 3, " holds version ", 7): all words in one string.
template <class... Words>
std::string say(const Words&... words) {
  std::string text;
  (append_word(text, words), ...);
  return text;
}

}  // namespace areal::sim
