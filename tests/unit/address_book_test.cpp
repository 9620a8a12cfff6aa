// The files in which processes of a run say where they listen.
#include "engine/real/host/address_book.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace areal::host {
namespace {

class Addresses : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "areal_run_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST_F(Addresses, PublishedAddressIsFoundAndReplaced) {
  RunDirectory book(path_);
  EXPECT_FALSE(book.find({4}).has_value());
  EXPECT_TRUE(book.withdraw({4}).has_value());
  const PeerAddress first{"127.0.0.1", 4711, 1};
  const PeerAddress second{"::1", 65535, 4294967295U};
  ASSERT_TRUE(book.publish({4}, first).has_value());
  EXPECT_EQ(RunDirectory(path_).find({4}), first);
  ASSERT_TRUE(book.publish({4}, second).has_value());
  EXPECT_EQ(book.find({4}), second);
  EXPECT_FALSE(book.find({5}).has_value());
  ASSERT_TRUE(book.withdraw({4}).has_value());
  EXPECT_FALSE(book.find({4}).has_value());
  EXPECT_TRUE(std::filesystem::is_empty(path_ + "/nodes"));
}

TEST_F(Addresses, OtherTextCountsAsNone) {
  RunDirectory book(path_);
  ASSERT_TRUE(book.publish({4}, {"127.0.0.1", 1, 1}).has_value());
  for (const std::string text : {"", "\n", "127.0.0.1 4711 1", "127.0.0.1 4711\n", "127.0.0.1 0 1\n",
                                 "127.0.0.1 65536 1\n", "127.0.0.1 4711 4294967296\n", "127.0.0.1 4711 1 1\n",
                                 "127.0.0.1 -1 1\n", " 4711 1\n", "127.0.0.1 4711x 1\n"}) {
    std::ofstream(path_ + "/nodes/4.addr", std::ios::trunc) << text;
    EXPECT_FALSE(book.find({4}).has_value()) << text;
  }
  std::ofstream(path_ + "/nodes/4.addr", std::ios::trunc) << std::string(1000, '1') << " 4711 1\n";
  EXPECT_FALSE(book.find({4}).has_value());
}

TEST_F(Addresses, FolderThatCannotBeMadeIsAnError) {
  std::ofstream(path_ + "/file") << "x";
  RunDirectory book(path_ + "/file");
  const Status status = book.publish({4}, {"127.0.0.1", 1, 1});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kIo);
}

}  // namespace
}  // namespace areal::host
