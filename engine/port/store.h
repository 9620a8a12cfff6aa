// Small durable values with compare-and-set.
#pragma once
#include "engine/port/types.h"

namespace areal::port {

// A put that ended kOk survives a crash of the node. Ends as StoreDone.
class Store {
 public:
  virtual ~Store() = default;
  virtual void put_if(SlotId slot, const StorePut& effect) = 0;
  virtual void get(SlotId slot, const StoreGet& effect) = 0;
};

}  // namespace areal::port
