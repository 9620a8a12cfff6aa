// Any protocol as a value: it can be copied, compared by digest, saved and loaded, whatever its type.
//
// A protocol is a class with
//   static constexpr std::string_view kName;               its name in traces, rules and texts
//   void step(const proto::Input& input, proto::Outbox& out);
//   AREAL_FIELDS(...)                                       all of its state; policies and options are not state
// and optionally `void list_waits(proto::WaitList&) const`. It is copyable, holds no pointers, and never blocks, reads
// a clock, draws at random or calls out.
#pragma once
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/state.h"
#include "engine/base/table.h"
#include "engine/proto/effect.h"
#include "engine/proto/input.h"
#include "engine/proto/waits.h"

namespace areal::node {

class ProtocolBox {
 public:
  template <class P>
  explicit ProtocolBox(P protocol) : self_(std::make_unique<Model<P>>(std::move(protocol))) {}
  ProtocolBox(const ProtocolBox& other) : self_(other.self_->clone()) {}
  ProtocolBox(ProtocolBox&&) noexcept = default;
  ProtocolBox& operator=(const ProtocolBox& other) {
    if (this != &other) self_ = other.self_->clone();
    return *this;
  }
  ProtocolBox& operator=(ProtocolBox&&) noexcept = default;
  ~ProtocolBox() = default;

  [[nodiscard]] std::string_view name() const { return self_->name(); }
  void step(const proto::Input& input, proto::Outbox& out) { self_->step(input, out); }
  // Costs what was touched since; equal states have equal digests.
  [[nodiscard]] Digest128 digest() const { return self_->digest(); }
  // The same, computed without running sums; for audits.
  [[nodiscard]] Digest128 audited_digest() const { return self_->audited_digest(); }
  void save(StateWriter& writer) const { self_->save(writer); }
  // False if the words are not of this protocol; the protocol is then unusable.
  bool load(StateReader& reader) { return self_->load(reader); }
  void list_waits(proto::WaitList& waits) const { self_->list_waits(waits); }

  // The protocol itself if it is a P, else null. For tests and white-box judges.
  template <class P>
  [[nodiscard]] const P* as() const {
    const auto* model = dynamic_cast<const Model<P>*>(self_.get());
    return model != nullptr ? &model->protocol : nullptr;
  }

 private:
  struct Concept {
    virtual ~Concept() = default;
    [[nodiscard]] virtual std::unique_ptr<Concept> clone() const = 0;
    [[nodiscard]] virtual std::string_view name() const = 0;
    virtual void step(const proto::Input& input, proto::Outbox& out) = 0;
    [[nodiscard]] virtual Digest128 digest() const = 0;
    [[nodiscard]] virtual Digest128 audited_digest() const = 0;
    virtual void save(StateWriter& writer) const = 0;
    virtual bool load(StateReader& reader) = 0;
    virtual void list_waits(proto::WaitList& waits) const = 0;
  };

  template <class P>
  struct Model final : Concept {
    explicit Model(P p) : protocol(std::move(p)) {}
    [[nodiscard]] std::unique_ptr<Concept> clone() const override { return std::make_unique<Model>(protocol); }
    [[nodiscard]] std::string_view name() const override { return P::kName; }
    void step(const proto::Input& input, proto::Outbox& out) override { protocol.step(input, out); }
    [[nodiscard]] Digest128 digest() const override { return state_digest(protocol); }
    [[nodiscard]] Digest128 audited_digest() const override {
      StateAuditor auditor;
      auditor.value(protocol);
      return auditor.digest();
    }
    void save(StateWriter& writer) const override { writer.value(protocol); }
    bool load(StateReader& reader) override { return reader.value(protocol), reader.ok(); }
    void list_waits(proto::WaitList& waits) const override {
      if constexpr (requires { protocol.list_waits(waits); }) protocol.list_waits(waits);
    }
    P protocol;
  };

  std::unique_ptr<Concept> self_;
};

}  // namespace areal::node
