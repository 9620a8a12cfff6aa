// One training rank's part of a weight update: pack what the plan says it owns, send it, meet the others.
//
// step by step: staging memory, pack (cast to the wire dtype), one send batch a wire dtype, the verifying sum, the
// final barrier. The sum adds what left every sender and subtracts what every receiver holds: it is zero exactly if all
// bytes arrived, and nobody applies otherwise.
#pragma once
#include "engine/proto/update_member.h"

namespace areal::proto {

class UpdateSender {
 public:
  static constexpr std::string_view kName = "update_sender";

  explicit UpdateSender(MemberOptions options) : member_(std::move(options)) {}

  void step(const Input& input, Outbox& out);

  [[nodiscard]] const UpdateMember& member() const { return member_; }
  void list_waits(WaitList& waits) const { member_.list_waits(waits); }

  AREAL_FIELDS(member_, stage_, packed_)

 private:
  enum class Stage : std::uint8_t { kNone, kPacking, kSending, kVerifying, kFinishing };

  void on_compute(const port::ComputeDone& done, Outbox& out);
  void on_batch(const port::BatchDone& done, Outbox& out);

  UpdateMember member_;
  Stage stage_ = Stage::kNone;
  std::uint64_t packed_ = 0;  // Low word of the digest of what left.
};

}  // namespace areal::proto
