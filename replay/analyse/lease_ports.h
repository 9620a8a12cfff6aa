// Numbers for the ports of two histories, so that leases that have the same pattern of ports read alike.
#pragma once
#include <tuple>
#include <vector>

#include "replay/analyse/history.h"

namespace areal::analyse {

// Leases of equal keys are told apart by their order. Looks at the row.
inline auto lease_key(const LeaseRow& row) { return std::tuple(row.host, std::string_view(row.holder)); }

// Replaces the ports. Leases of both sides that stand at one place under one key are a pair. All pairs come to have
// equal numbers exactly if a one-to-one mapping of the hosts' ports makes them equal. Where none does, the pair that
// breaks it gets unequal numbers, and pairs of ports that were not seen before get equal ones all the same.
// REQUIRES: both are sorted by key.
void number_ports_alike(std::vector<LeaseRow>& left, std::vector<LeaseRow>& right);

}  // namespace areal::analyse
