// Small durable values with compare-and-set.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// A put that ended kOk survives a crash of the node. Ends as StoreDone: kMismatch if put_if() found another value than
// it expected, kRefused if get() found none.
//
// Sim: one table of the world; it never fails. Real: files.
//
// Not thread-safe: only the node's loop calls it.
class Store {
 public:
  virtual ~Store() = default;
  virtual void put_if(SlotId slot, const StorePut& effect) = 0;
  virtual void get(SlotId slot, const StoreGet& effect) = 0;
};

}  // namespace areal::port
