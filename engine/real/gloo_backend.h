// The host's groups over Gloo: the one place that knows both.
#pragma once
#include <memory>
#include <string>

#include "engine/real/host/group_backend.h"

namespace areal::real {

struct GlooPlace {
  std::string folder;  // Where members of one machine meet.
  std::string run;     // Name of the run; part of the name of every group.
  std::string address = "127.0.0.1";
};

host::GroupBackendMaker gloo_backend(GlooPlace place);

}  // namespace areal::real
