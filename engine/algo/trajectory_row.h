// One row of training data from what an inference server generated, aligned token by token.
//
// All fields are of one length, at the token's own index: logprobs[t] is the log-probability of token t given the
// earlier ones. Where nothing was generated: logprob 0, loss mask 0, version -1, turn -1. Pure functions.
// Source: the trajectory record of AReaL; concatenated turns as its agents export them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

// One answer of a server.
struct Generation {
  std::vector<std::int32_t> input_tokens;
  std::vector<std::int32_t> output_tokens;
  std::vector<float> output_logprobs;
  std::vector<std::int64_t> output_versions;
};

struct TrajectoryRow {
  std::vector<std::int32_t> input_ids;
  std::vector<float> logprobs;
  std::vector<std::uint8_t> loss_mask;
  std::vector<std::int64_t> versions;
  std::vector<std::int32_t> turn_ids;
  std::vector<std::uint8_t> attention_mask;
};

// kInvalid: outputs of different lengths, or no input token: a first token that is trained would wrap around to the
// last column when the row is aligned with its predictions.
Result<TrajectoryRow> trajectory_row(const Generation& generation);

struct ChildRow {
  TrajectoryRow row;
  bool parent_used = false;  // Else only the child's own output is trained, which is worth a warning.
};

// A later turn whose input begins with the parent's row: it inherits the parent's fields, has nothing generated up to
// the end of its own input, and its output gets the next turn id. A parent that is not shorter than the child's input
// does not count. kInvalid: as trajectory_row(); the input does not begin with the parent's tokens.
Result<ChildRow> child_row(const TrajectoryRow& parent, const Generation& generation);

// Makes the row `width` long: padding looks like nothing that was generated, with version and turn -1, and is not
// attended to. REQUIRES: the row is not longer.
void pad_row(TrajectoryRow& row, std::size_t width);

}  // namespace areal::algo
