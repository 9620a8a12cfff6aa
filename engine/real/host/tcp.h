// TCP streams and listeners on a loop: everything is posted, nothing waits, and nothing is called after close().
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/real/host/loop.h"

namespace areal::host {

struct TcpHandlers {
  std::function<void()> on_connected;                                 // Of connect() only.
  std::function<void(std::span<const std::uint8_t> bytes)> on_bytes;  // Valid during the call.
  std::function<void()> on_written;                                   // The last write() is with the system.
  std::function<void(const std::string& reason)> on_end;              // By the peer or the system; the last call.
};

// Not thread-safe: only the loop calls it. Destroying closes; it must not happen inside one of its own handlers, which
// may call close() instead.
class TcpStream {
 public:
  // Begins to connect to a numeric address. Always ends in on_connected or on_end, later.
  static std::unique_ptr<TcpStream> connect(Loop& loop, const std::string& address, std::uint16_t port,
                                            TcpHandlers handlers);
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;
  ~TcpStream();

  // For a stream from a listener: begins to read.
  void start(TcpHandlers handlers);
  // REQUIRES: !is_writing(), not closed.
  void write(std::vector<std::uint8_t> bytes);
  [[nodiscard]] bool is_writing() const;
  // Hands over what the system takes at once and closes. For a last word to the peer; it may get lost.
  void close_saying(std::span<const std::uint8_t> bytes);
  void close();
  // "127.0.0.1:4711"; empty if it was never connected.
  [[nodiscard]] const std::string& remote() const;

 private:
  friend class TcpListener;
  struct Impl;
  explicit TcpStream(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // Shared with the operations under way.
};

// Not thread-safe: only the loop calls it.
class TcpListener {
 public:
  // Port 0: any free one. kIo: the address is not there or the port is taken.
  static Result<std::unique_ptr<TcpListener>> open(Loop& loop, const std::string& address, std::uint16_t port,
                                                   std::function<void(std::unique_ptr<TcpStream>)> on_accept);
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  ~TcpListener();
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Impl;
  explicit TcpListener(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace areal::host
