#include "replay/record/block_words.h"

#include "replay/record/cores.h"

namespace areal::record {

namespace {

constexpr std::size_t kMostReady = 16;

// Writes down the words of what it hears.
class WordSink final : public port::TraceSink {
 public:
  explicit WordSink(std::uint64_t lines) : words_(lines * kLikelyWords) {}

  void on_event(const port::TraceEvent& event) override { end_at(port::write_words(event, room())); }
  void on_state(NodeId node, SlotId slot, const Digest128& digest) override {
    end_at(port::write_words(node, slot, digest, room()));
  }
  void on_stream(std::uint32_t stream, std::string_view name) override {
    end_at(port::write_words(stream, name, room()));
  }
  void on_decision(const port::Decision& decision) override { end_at(port::write_words(decision, room())); }

  std::vector<std::uint64_t> take() {
    words_.resize(size_);
    return std::move(words_);
  }

 private:
  static constexpr std::size_t kLikelyWords = 12;  // A line.

  std::uint64_t* room() {
    if (words_.size() - size_ < port::kMostLineWords) words_.resize(words_.size() * 2 + port::kMostLineWords);
    return words_.data() + size_;
  }
  void end_at(const std::uint64_t* end) { size_ = static_cast<std::size_t>(end - words_.data()); }

  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

}  // namespace

BlockWords::BlockWords(const RunReader& reader, Ahead ahead) : reader_(reader) {
  const bool is_ahead = ahead == Ahead::kAlways || (ahead == Ahead::kAuto && may_use_two_cores());
  if (is_ahead && reader.blocks().size() > 1) thread_ = std::thread([this] { read_ahead(); });
}

BlockWords::Block BlockWords::read(std::size_t index) {
  Block block;
  // A block has as many lines as its body can hold, whatever the row says.
  WordSink sink(std::min<std::uint64_t>(reader_.blocks()[index].lines, 65'536));
  block.status = reader_.read_block(index, sink);
  block.words = sink.take();
  walk_.on_words(block.words);
  if (block.status) block.status = reader_.check_walk(index, walk_);
  return block;
}

void BlockWords::read_ahead() {
  for (std::size_t index = 0; index < reader_.blocks().size(); ++index) {
    Block block = read(index);
    const bool is_last = !block.status;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stops_ || ready_.size() < kMostReady; });
    if (stops_) return;
    ready_.push_back(std::move(block));
    changed_.notify_one();
    if (is_last) return;
  }
}

BlockWords::Block BlockWords::take() {
  if (!thread_.joinable()) return read(next_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Block block = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_one();
  return block;
}

Result<std::span<const std::uint64_t>> BlockWords::next() {
  given_ = {};
  if (next_ == reader_.blocks().size()) return std::span<const std::uint64_t>();
  given_ = take();
  ++next_;
  AREAL_TRY(given_.status);
  return std::span<const std::uint64_t>(given_.words);
}

BlockWords::~BlockWords() { stop(); }

void BlockWords::stop() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace areal::record
