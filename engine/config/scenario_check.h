// What must hold between the values of a scenario, each of which is right by itself.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/scenario.h"
#include "engine/config/yaml_document.h"

namespace areal::config {

// Where the keys of a file are, and which of them are known to be wrong.
class Places {
 public:
  void add(std::string path, int line) { lines_.emplace_back(std::move(path), line); }
  // Of the key, else of the nearest mapping around it that is in the file; 0 if it was set by an override.
  [[nodiscard]] int line_of(std::string_view path) const;

 private:
  std::vector<std::pair<std::string, int>> lines_;
};

// Appends what is wrong to `problems`. Says nothing more about a key that a problem already names.
void check_scenario(const Scenario& scenario, const Places& places, std::vector<Problem>& problems);

}  // namespace areal::config
