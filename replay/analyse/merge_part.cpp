#include "replay/analyse/merge_part.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::analyse {

Status MergePart::advance() {
  is_first_ = !was_begun_;
  was_begun_ = true;
  step_.clear();
  input_seq_ = 0;
  has_event_ = false;
  while (true) {
    if (!next_) {
      const auto line = lines_.next();
      if (!line) return line.error();
      if (*line == nullptr) break;
      next_ = **line;
    }
    if (const auto* event = std::get_if<port::TraceEvent>(&*next_)) {
      if (begins_step(*event)) return Unit{};
      AREAL_TRY(check(*event));
      has_event_ = true;
    } else if (const auto* state = std::get_if<StateLine>(&*next_); state != nullptr) {
      if (state->node != process_.node) return Error{Errc::kCorrupt, "it holds states of several nodes"};
      input_seq_ = 0;
    }
    step_.push_back(std::move(*next_));
    next_.reset();
  }
  at_end_ = step_.empty();
  return Unit{};
}

bool MergePart::begins_step(const port::TraceEvent& event) const {
  const bool follows = event.what == port::TraceWhat::kEffect || event.what == port::TraceWhat::kDropped;
  return has_event_ && !(follows && input_seq_ != 0 && event.cause == input_seq_);
}

Status MergePart::check(const port::TraceEvent& event) {
  if (event.seq != ++read_)
    return Error{Errc::kCorrupt, fmt::format("its event {} has the number {}", read_, event.seq)};
  const bool is_fault = event.what == port::TraceWhat::kFault;
  if (!is_fault && (event.node != process_.node || event.incarnation != process_.incarnation)) {
    return Error{Errc::kCorrupt, fmt::format("its event {} is of another process than those before", event.seq)};
  }
  if (event.what == port::TraceWhat::kInput) input_seq_ = event.seq;
  if (!has_event_) {
    lamport_ = std::max(lamport_, event.lamport);
    at_ = std::max(at_, event.at);
  }
  return Unit{};
}

}  // namespace areal::analyse
