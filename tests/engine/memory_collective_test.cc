// The order of additions in the in-memory all-reduce. tests/training/collective_test.cc tests the rest.
#include "engine/backends/devices.h"
#include "engine/collective.h"
#include "tests/engine/replicas.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

TEST_CASE("the in-memory all-reduce adds ranks in the order of the pairwise tree") {
  constexpr std::int64_t kElements = 30011;  // each rank's slice has more than one block
  const int ranks = GENERATE(2, 3, 4, 5, 7, 8);
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const auto collective = engine::make_memory_collective(ranks);
  std::vector<Floats> values;
  std::vector<std::unique_ptr<engine::Stream>> streams;
  for (int rank = 0; rank < ranks; ++rank) {
    values.push_back(random_floats(kElements, static_cast<unsigned>(rank)));
    streams.push_back(device->create_stream({.name = "rank"}));
  }
  Floats expected;
  Floats in_order;
  for (std::size_t i = 0; i < kElements; ++i) {
    Floats addends;
    float sum = 0.0F;
    for (const Floats& of_rank : values) {
      addends.push_back(of_rank[i]);
      sum += of_rank[i];
    }
    expected.push_back(tree_sum(addends));
    in_order.push_back(sum);
  }
  std::vector<engine::CollectivePart> parts;
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    parts.push_back({streams[rank].get(), values[rank].data()});
  }
  collective->all_reduce_sum(parts, kElements, "all-reduce");
  for (const auto& stream : streams) stream->record().synchronize();
  for (const Floats& of_rank : values) CHECK(of_rank == expected);
  CHECK((in_order == expected) == (ranks <= 3));  // for up to three ranks, the tree is the plain order
}

}  // namespace arbalest::tests
