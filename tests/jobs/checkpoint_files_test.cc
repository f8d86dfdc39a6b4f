// The files of a checkpoint when all goes well.
#include <bit>

#include "checkpoint/xxh3.h"
#include "engine/base/error.h"
#include "tests/jobs/checkpoint_rig.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using tests::TemporaryDirectory;

TEST_CASE("checkpoint: what was written is read back bit by bit") {
  const TemporaryDirectory run;
  const fs::path path = write_small(run / "checkpoints", 12345);
  CHECK(path == run / "checkpoints/000000012345");
  CHECK(names_in(run / "checkpoints") == std::vector<std::string>{"000000012345"});
  CHECK(names_in(path) ==
        std::vector<std::string>{"central.safetensors", "learner-00.safetensors", "manifest.txtpb", "state.txtpb"});

  const Checkpoint checkpoint = open_checkpoint(path);
  CHECK(checkpoint.batches == 12345);
  CHECK(checkpoint.has("state.txtpb"));
  CHECK_FALSE(checkpoint.has("manifest.txtpb"));
  CHECK(read_text(checkpoint, "state.txtpb") == "batches: 12345\n");
  const std::vector<dataflow::NamedTensor> expected = small_tensors(12345.25F);
  const std::vector<dataflow::NamedTensor> tensors = read_tensors(checkpoint, "learner-00.safetensors");
  REQUIRE(tensors.size() == expected.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(tensors[i].name == expected[i].name);
    CHECK(tensors[i].shape == expected[i].shape);
    REQUIRE(tensors[i].values.size() == expected[i].values.size());
    for (std::size_t k = 0; k < tensors[i].values.size(); ++k) {
      CHECK(std::bit_cast<std::uint32_t>(tensors[i].values[k]) == std::bit_cast<std::uint32_t>(expected[i].values[k]));
    }
  }
}

TEST_CASE("checkpoint: the manifest lists sizes and hashes that other programs compute alike") {
  const TemporaryDirectory run;
  CheckpointWriter writer(run / "checkpoints", 7);
  writer.add_text("state.txtpb", "");
  const std::string manifest = tests::read_text(writer.commit() / "manifest.txtpb");
  // Both hashes were computed by xxh128sum: of an empty file, and of the lines before the checksum.
  CHECK(manifest ==
        "# proto-file: arbalest/v1/checkpoint.proto\n"
        "# proto-message: arbalest.v1.CheckpointManifest\n"
        "\n"
        "format_version: 1\n"
        "batches: 7\n"
        "file { name: \"state.txtpb\" size: 0 xxh3_128: \"99aa06d3014798d86001c324468d497f\" }\n"
        "checksum: \"984e59705c6fb2456cb14689681ee184\"\n");
}

TEST_CASE("checkpoint: numbers beyond twelve digits keep their order") {
  const TemporaryDirectory run;
  write_small(run / "checkpoints", 999'999'999'999);
  const fs::path path = write_small(run / "checkpoints", 1'000'000'000'000);
  CHECK(path.filename() == "1000000000000");
  CHECK(newest_checkpoint(run / "checkpoints", no_warning)->path == path);
}

TEST_CASE("checkpoint: a writer that does not commit leaves nothing") {
  const TemporaryDirectory run;
  {
    CheckpointWriter writer(run / "checkpoints", 1);
    fill(writer, 1);
    CHECK(names_in(run / "checkpoints").size() == 1);
    CHECK_FALSE(newest_checkpoint(run / "checkpoints", no_warning).has_value());
  }
  CHECK(names_in(run / "checkpoints").empty());
}

TEST_CASE("checkpoint: a commit replaces the checkpoint of its number") {
  const TemporaryDirectory run;
  const fs::path path = write_small(run / "checkpoints", 5);
  CheckpointWriter writer(run / "checkpoints", 5);
  writer.add_text("other.txtpb", "other");
  CHECK(open_checkpoint(path).has("state.txtpb"));
  CHECK(writer.commit() == path);
  CHECK(names_in(path) == std::vector<std::string>{"manifest.txtpb", "other.txtpb"});
  CHECK(refusal(path) == "accepted");
}

TEST_CASE("checkpoint: copied, moved and renamed directories verify") {
  const TemporaryDirectory run;
  const fs::path path = write_small(run / "checkpoints", 5);
  fs::copy(path, run / "copy", fs::copy_options::recursive);
  CHECK(holds_small(open_checkpoint(run / "copy")));
  fs::create_directory(run / "elsewhere");
  fs::rename(path, run / "elsewhere/renamed");
  CHECK(holds_small(open_checkpoint(run / "elsewhere/renamed")));
  fs::create_directory_symlink(run / "elsewhere/renamed", run / "link");
  CHECK(holds_small(open_checkpoint((run / "link") / "")));
}

TEST_CASE("checkpoint: the newest one is found by its content, whatever its name") {
  const TemporaryDirectory run;
  const fs::path checkpoints = run / "checkpoints";
  CHECK_FALSE(newest_checkpoint(checkpoints, no_warning).has_value());
  write_small(checkpoints, 10);
  write_small(checkpoints, 9);
  CHECK(newest_checkpoint(checkpoints, no_warning)->batches == 10);
  fs::rename(checkpoints / "000000000009", checkpoints / "000000000011");
  const std::optional<Checkpoint> newest = newest_checkpoint(checkpoints, no_warning);
  REQUIRE(newest.has_value());
  CHECK(newest->batches == 10);
  CHECK(holds_small(*newest));
}

TEST_CASE("checkpoint: old ones go, the newest and the best stay") {
  const TemporaryDirectory run;
  const fs::path checkpoints = run / "checkpoints";
  for (std::uint64_t batches = 1; batches <= 6; ++batches) write_small(checkpoints, batches);
  const std::vector<std::uint64_t> best = {2, 6};
  retain(checkpoints, 2, best, no_warning);
  CHECK(names_in(checkpoints) == std::vector<std::string>{"000000000002", "000000000005", "000000000006"});
}

}  // namespace arbalest::jobs
