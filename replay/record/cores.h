// Whether a thread of one's own would run beside the caller.
#pragma once
namespace areal::record {

// True unless this process is confined to one core.
bool may_use_two_cores();

}  // namespace areal::record
