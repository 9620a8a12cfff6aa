// The catalogue of known failures: one scenario each, run with its defect and without, and held to what it says.
//
// With the defect: the named invariant must be broken at the named node and version, or the named refusal must have
// happened and the run ended as named. Without it the run must hold. A scenario with interleave points is run in all
// orders: one at least must show the defect, and without it none may go wrong.
#pragma once
#include <string>
#include <vector>

#include "sim/explore/interleave.h"

namespace areal::sim {

struct CatalogueReport {
  std::string file;
  std::string source;   // "H20", "GAP-06": where the failure was seen.
  std::string name;     // Of the scenario.
  std::string seat;     // guard or judge: who noticed.
  bool found = false;   // With the defect: found as named.
  std::string with;     // What was found: invariant, node and version; or why it does not count as found.
  std::string message;  // Of the judge.
  bool clean = false;   // Without the defect: nothing was found.
  std::string without;
  std::string witness;  // The order of points that shows the defect; empty without points.
};

// Files NAME.yaml of DIRECTORY/reports and DIRECTORY/gaps, in the order of their paths; empty if there are none.
std::vector<std::string> catalogue_files(const std::string& directory);
// The directory with scenarios of a program: ./scenarios, else one beside or above the folder of `program` (a path, as
// in argv[0]). Empty: nowhere.
std::string find_scenarios(const std::string& program);

// Errors: the file is no scenario with a defect, or its room cannot be built.
Result<CatalogueReport> run_catalogue_entry(const std::string& file, std::uint64_t seed);

}  // namespace areal::sim
