// Trace lines as text for people, with the names of the recording that they come from.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/port/trace_sink.h"
#include "replay/analyse/trace_lines.h"
#include "replay/record/run_reader.h"

namespace areal::analyse {

struct NamedValue {
  std::string name;
  std::string value;
};

std::string_view what_text(port::TraceWhat what);

// "     17      1.250 ms  e0/receiver              input   timer{timer=2}  <- 12".
std::string event_line(const record::RunReader& reader, const port::TraceEvent& event);
std::string line_text(const record::RunReader& reader, const TraceLine& line);

// Every field of a line by name, in a fixed order: "record" and "body" are kinds, "record.x" their fields.
std::vector<NamedValue> line_fields(const record::RunReader& reader, const TraceLine& line);

}  // namespace areal::analyse
