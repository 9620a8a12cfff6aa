// What moves after cards were found to fit: payload between pairs, and sums over the group.
//
// All throw MeshFailure; what was received is undefined then, and the memory that moved must stay as it is until the
// mesh has been closed: Gloo's own thread may be amid a message.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/real/accel/gloo_groups.h"
#include "engine/real/accel/gloo_mesh.h"

namespace areal::accel {

// Starts all receives and sends, then waits for each. REQUIRES: the sizes of both sides of each pair are equal.
void move_payload(Mesh& mesh, BatchWish& wish);

// What the ranks sent of the piece that this one adds up.
struct SumParts {
  std::vector<float> sums;
  std::vector<std::int64_t> statuses;
};

// Replaces `sums` and `statuses` of all members by their sums, added in the order of ranks, so that all hold the same
// bits. REQUIRES: equal sizes on all members.
void move_sums(Mesh& mesh, BatchWish& wish, SumParts& parts);

}  // namespace areal::accel
