// The lines after the story of a run: its verdict, and what was done in numbers.
#pragma once
#include <string>

#include "sim/cli/story.h"

namespace areal::cli {

// `last_line`: what is particular to the kind of run, such as its times.
void print_summary(const sim::Room& room, const sim::RunResult& result, const Story::Totals& totals,
                   const std::string& last_line);

}  // namespace areal::cli
