#include "tests/cudnn/convolution_table.h"

#include <filesystem>

#include <fmt/format.h>

#include "tests/cudnn/zoo_convolutions.h"

namespace arbalest::tests::cudnn {

namespace {

using engine::Precision;
using engine::cuda::Order;

Order other(Order order) { return order == Order::kChannelsLast ? Order::kCanonical : Order::kChannelsLast; }

std::string precision_of(const Row& row) {
  return std::string(to_string(row.convolution.precision)) + (row.float_gradient ? ", gradient FP32" : "");
}

class Interview {
 public:
  Interview(const Library& library, const Descriptor& device) : library_(library), device_(device) {}

  void ask_about(const ZooConvolution& of) {
    std::vector<Pass> passes{Pass::kForward, Pass::kWeightGradient};
    if (of.input_gradient) passes.push_back(Pass::kInputGradient);
    Convolution turned = of.convolution;
    turned.order = other(turned.order);
    for (const Pass pass : passes) {
      add({.model = of.model, .convolution = of.convolution, .pass = pass, .used = true, .answer = {}});
      if (of.convolution.precision == Precision::kFloat32) {
        add({.model = of.model, .convolution = turned, .pass = pass, .answer = {}});
      }
      if (of.convolution.precision == Precision::kBFloat16 && pass == Pass::kWeightGradient) {
        add({.model = of.model, .convolution = of.convolution, .pass = pass, .float_gradient = true, .answer = {}});
      }
    }
  }

  std::vector<Row> take_rows() { return std::move(rows_); }

 private:
  void add(Row row) {
    try {
      row.answer = ask(library_, device_, row.convolution, row.pass, kAllowedWorkspaceBytes, row.float_gradient);
    } catch (const CallFailed&) {
      row.answer.reset();  // the table shows that cuDNN rejects the query
    }
    rows_.push_back(std::move(row));
  }

  const Library& library_;
  const Descriptor& device_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> ask_about_zoo(const Library& library, const Descriptor& device) {
  Interview interview(library, device);
  for (const Precision precision : {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBFloat16}) {
    for (const ZooConvolution& convolution : zoo_convolutions(precision)) interview.ask_about(convolution);
  }
  return interview.take_rows();
}

std::string to_string(const Row& row) {
  return fmt::format("{}: {}: {} in {}, {}", row.model, to_string(row.convolution), to_string(row.pass),
                     precision_of(row), to_string(row.convolution.order));
}

std::string to_text(const std::vector<Row>& rows, const std::string& title) {
  std::string text = title +
                     "\nmodel\tconvolution\tpass\tprecision\torder\tused\tengine\trank\ttensor cores\tworkspace bytes\t"
                     "repeatable without tensor cores\trepeatable with tensor cores\tcandidates\n";
  for (const Row& row : rows) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t", row.model, to_string(row.convolution), to_string(row.pass),
                        precision_of(row), to_string(row.convolution.order), row.used ? "yes" : "no");
    if (!row.answer) {
      text += "refused\t\t\t\t\t\t\n";
      continue;
    }
    const Answer& answer = *row.answer;
    text += answer.engine ? fmt::format("{}\t{}\t{}\t{}", answer.engine->number, answer.engine->rank,
                                        answer.engine->tensor_cores ? "yes" : "no", answer.engine->workspace_bytes)
                          : "none\t\t\t";
    text += fmt::format("\t{}\t{}\t{}\n", answer.without_cores, answer.with_cores, answer.candidates);
  }
  return text;
}

std::string title_of(const Library& library, const std::string& device_file) {
  return fmt::format("# cuDNN {}, device {}", library.version(),
                     std::filesystem::path(device_file).filename().string());
}

}  // namespace arbalest::tests::cudnn
