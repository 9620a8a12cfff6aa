// Prints the events of a recording as lines, all or those that a filter lets through.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "replay/record/run_reader.h"

namespace areal::analyse {

// `*` stands for any text, `?` for one character.
bool matches_pattern(std::string_view pattern, std::string_view text);

struct DumpFilter {
  std::string node = "*";  // Pattern of "node" or "node/slot".
  std::string kind = "*";  // Pattern of the kind of the record or of its body.
  std::uint64_t from = 0;  // By seq, both ends included.
  std::uint64_t to = UINT64_MAX;
  bool with_states = false;     // Also states of the nodes that match.
  bool with_decisions = false;  // Also decisions, whatever the node and kind.
};

class LineOut {
 public:
  virtual ~LineOut() = default;
  virtual void line(std::string_view text) = 0;
};

// Gives how many lines were printed.
Result<std::uint64_t> dump(const record::RunReader& reader, const DumpFilter& filter, LineOut& out);

}  // namespace areal::analyse
