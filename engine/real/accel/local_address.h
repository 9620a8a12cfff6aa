// Whether this machine can listen at an address; Gloo itself does not survive a name that cannot be resolved.
#pragma once
#include <string>

namespace areal::accel {

// Whether `hostname` resolves and a socket can be bound to it. May ask a name server.
bool can_listen_at(const std::string& hostname);

bool has_interface(const std::string& name);

}  // namespace areal::accel
