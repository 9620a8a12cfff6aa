// What moves after cards were found to fit: payload between pairs, and sums over the group.
#pragma once
#include <cstdint>
#include <span>

#include "engine/real/accel/gloo_groups.h"
#include "engine/real/accel/gloo_mesh.h"

namespace areal::accel {

// Starts all receives and sends, then waits for each. REQUIRES: the sizes of both sides of each pair are equal.
// Throws MeshFailure; then what was received is undefined, and no connection uses the memory any more.
void move_payload(Mesh& mesh, BatchWish& wish);

// Replaces `sums` and `statuses` of all members by their sums, added in the order of ranks, so that all hold the same
// bits. REQUIRES: equal sizes on all members. Throws MeshFailure, as above.
void move_sums(Mesh& mesh, BatchWish& wish);

}  // namespace areal::accel
