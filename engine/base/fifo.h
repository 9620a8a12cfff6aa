// Values in the order in which they came, whose digest is kept on mutation: a step costs what it touched, however many
// wait. Between pops and pushes no value moves, so its ticket stays what it was. A value type; not thread-safe.
#pragma once
#include <cstdint>
#include <utility>

#include "engine/base/table.h"

namespace areal {

template <class Value>
class Fifo {
 public:
  void push(Value value) { AREAL_CHECK(entries_.insert(next_++, std::move(value))); }
  // REQUIRES: !empty().
  Value pop() {
    AREAL_CHECK(!empty());
    const std::uint64_t ticket = entries_.begin()->key;
    Value value = entries_.begin()->value;
    entries_.erase(ticket);
    return value;
  }
  void clear() { entries_.clear(); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  AREAL_FIELDS(next_, entries_)

 private:
  std::uint64_t next_ = 0;
  Table<std::uint64_t, Value> entries_;  // By ticket.
};

}  // namespace areal
