// Models of ids and numbers: valid models, errors for layers that do not fit, and the zoo's matrix factorization.
#include <google/protobuf/text_format.h>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/input/formats/ratings.h"
#include "dataflow/models/model_reader.h"
#include "dataflow/models/zoo/zoo.h"
#include "tests/support/catch.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::dataflow {

namespace {

const InputDescription kRatings = ratings_input({40, 30});
const InputDescription kImages = image_input({1, 8, 8}, 10);

constexpr const char* kModel = R"(
  layers { name: "user" input: "ids" embedding { rows: 40 width: 3 } }
  layers { name: "item" input: "ids" embedding { rows: 30 width: 3 column: 1 } }
  layers { name: "rating" input: "user" input: "item" inner_product {} }
  layers { name: "loss" input: "rating" input: "label" squared_error {} })";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Graph build(const std::string& text, const InputDescription& input = kRatings) {
  v1::Model model;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &model));
  fill_defaults(model);
  FieldIssues issues;
  const auto layers = read_model(model, input, issues);
  for (const FieldIssue& issue : issues.all()) {
    engine::fail(engine::ErrorKind::kInvalidJob, "{}: {}", issue.path, issue.message);
  }
  return Graph::build(input, layers);
}

// The errors for a model that does not fit.
std::string said_of(const std::string& text, const InputDescription& input = kRatings) {
  try {
    build(text, input);
  } catch (const engine::Error& error) {
    return error.what();
  }
  return "nothing";
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  const auto shapes = graph.shapes(1);
  for (const Graph::Node& node : graph.nodes()) {
    for (const ParameterSpec& spec : node.layer->parameters(Graph::input_shapes(node, shapes))) {
      count += spec.shape.elements();
    }
  }
  return count;
}

}  // namespace

TEST_CASE("ids are looked up, and numbers are predicted without an accuracy") {
  const Graph graph = build(kModel);
  const std::vector<engine::Shape> expected{{8, 2}, {8}, {8, 3}, {8, 3}, {8, 1}, {1}};
  CHECK(graph.shapes(8) == expected);
  CHECK(parameter_count(graph) == 40 * 3 + 30 * 3);
  CHECK_NOTHROW(build(replaced(kModel, "rows: 40", "rows: 50")));
}

TEST_CASE("the error for a layer that does not fit ids or numbers names one that does") {
  CHECK(said_of(replaced(kModel, "rows: 40", "rows: 39")) ==
        "layer 'user' (embedding): has 39 rows, but column 0 of the data has 40 ids; write rows: 40");
  CHECK(said_of(replaced(kModel, "column: 1", "column: 2")) ==
        "layer 'item' (embedding): reads column 2, but the data has 2 of them, counted from 0");
  CHECK_THAT(said_of(replaced(kModel, "input: \"ids\" embedding", "input: \"image\" embedding")),
             ContainsSubstring("reads 'image', which is neither a layer nor \"ids\" or \"label\""));
  CHECK_THAT(
      said_of(replaced(kModel, "embedding { rows: 40 width: 3 }", "dense { units: 3 }")),
      ContainsSubstring("layer 'user' (dense): reads \"ids\" as if they were numbers; look them up by embedding"));
  CHECK_THAT(
      said_of(replaced(kModel, "width: 3 column", "width: 4 column")),
      ContainsSubstring("layer 'rating' (inner_product): multiplies two vectors of one length, not 1x3 and 1x4"));
  CHECK_THAT(said_of(replaced(kModel, "squared_error", "softmax_cross_entropy")),
             ContainsSubstring("the labels of the data are numbers; use squared_error {}"));
  CHECK_THAT(said_of(replaced(kModel, "input: \"rating\" input: \"label\"", "input: \"user\" input: \"label\"")),
             ContainsSubstring("needs one prediction per example as its first input, not 1x3"));
  CHECK_THAT(said_of(std::string(kModel) + "layers { name: \"a\" input: \"rating\" input: \"label\" accuracy {} }"),
             ContainsSubstring("layer 'a' (accuracy): compares with classes, but the labels of the data are numbers"));
  CHECK_THAT(said_of("layers { name: \"user\" input: \"ids\" embedding { rows: 40 width: 1 } }"),
             ContainsSubstring("the model has no loss; end it with squared_error {}"));
  CHECK_THAT(said_of("layers { name: \"a\" input: \"image\" dense { units: 1 } }"
                     "layers { name: \"b\" input: \"a\" input: \"label\" squared_error {} }",
                     kImages),
             ContainsSubstring("the labels of the data are classes; use softmax_cross_entropy {}"));
  CHECK_THAT(said_of("layers { name: \"a\" input: \"image\" embedding { rows: 9 width: 10 } }"
                     "layers { name: \"b\" input: \"a\" input: \"label\" softmax_cross_entropy {} }",
                     kImages),
             ContainsSubstring("layer 'a' (embedding): looks up ids, which its input does not have"));
}

TEST_CASE("each value out of range is an error at its field") {
  const auto said = [](const std::string& from, const std::string& to) { return said_of(replaced(kModel, from, to)); };
  CHECK_THAT(said("rows: 40 ", ""), ContainsSubstring("layers[0].embedding.rows") && ContainsSubstring("is missing"));
  CHECK_THAT(said("rows: 40", "rows: 0"), ContainsSubstring("rows must be in [1, 1000000000], not 0"));
  CHECK_THAT(said("width: 3", ""), ContainsSubstring("layers[0].embedding.width") && ContainsSubstring("is missing"));
  CHECK_THAT(said("column: 1", "column: -1"), ContainsSubstring("layers[1].embedding.column"));
  CHECK_THAT(said("squared_error {}", "squared_error { weight: 0 }"),
             ContainsSubstring("layers[3].squared_error.weight"));
  CHECK_THAT(said("inner_product {}", "inner_product { bias { decay_multiplier: 0 } }"),
             ContainsSubstring("bias is described, but use_bias is false"));
}

TEST_CASE("zoo: matrix factorization has a vector and a number for each id, and one number for all") {
  const auto count = [](const std::string& model) {
    return parameter_count(Graph::build(kRatings, tests::zoo_layers(model, kRatings)));
  };
  CHECK(count("matrix_factorization {}") == (40 + 30) * (16 + 1) + 1);
  CHECK(count("matrix_factorization { width: 5 mean: 3.5 }") == (40 + 30) * (5 + 1) + 1);
}

TEST_CASE("zoo: matrix factorization needs ratings, other models need images") {
  const auto refusal = [](const std::string& model, const InputDescription& input) {
    v1::Model message;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(model, message.mutable_zoo()));
    fill_defaults(message);
    FieldIssues issues;
    CHECK(expand(message.zoo(), input, issues).empty());
    REQUIRE(issues.all().size() == 1);
    return issues.all()[0].path + " | " + issues.all()[0].message;
  };
  CHECK(refusal("lenet {}", kRatings) ==
        "zoo.lenet | lenet classifies images, and the data has ratings; choose matrix_factorization {}");
  CHECK(
      refusal("matrix_factorization {}", kImages) ==
      "zoo.matrix_factorization | matrix_factorization needs data { ratings { ... } } with 2 columns of ids; the data "
      "has images");
  CHECK(refusal("matrix_factorization {}", ratings_input({3, 4, 5})) ==
        "zoo.matrix_factorization | matrix_factorization needs data { ratings { ... } } with 2 columns of ids; the "
        "data has 3");
  CHECK(refusal("matrix_factorization { width: 0 }", kRatings) ==
        "zoo.matrix_factorization.width | width must be in [1, 1048576], not 0");
  CHECK(refusal("matrix_factorization { mean: 2000 }", kRatings) ==
        "zoo.matrix_factorization.mean | mean must be in [-1000, 1000], not 2000");
}

}  // namespace arbalest::dataflow
