// Makes runs with random weights, and computes a model's output, for tests that compare with other programs.
//
//   model_probe make JOB DIRECTORY SEED        writes DIRECTORY/job.txtpb and DIRECTORY/model.safetensors
//   model_probe run DIRECTORY BATCH INPUT OUT  reads and writes numbers without a header: INPUT [BATCH, ...] float32,
//   or
//                                              int32 for ids; OUT float32
//   model_probe examples RUN ROOT IMAGES LABELS  writes the test set of a run, with the data below ROOT, as evaluation
//                                              reads it: IMAGES [n, ...] float32, LABELS [n] int32
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/input/example.h"
#include "engine/backends/devices.h"
#include "engine/host/pool.h"
#include "learners/inference_runner.h"
#include "options/loading/evaluation_job.h"
#include "options/loading/load_job.h"
#include "saved_model/atomic_file.h"
#include "saved_model/model_description.h"
#include "saved_model/safetensors.h"
#include "train/data/dataset_loading.h"
#include "train/weights/describe_model.h"
#include "train/weights/saved_model.h"

namespace arbalest::tests {

namespace {

using dataflow::Graph;

// Values as large as those of trained models, running statistics included.
std::vector<float> random_values(const dataflow::ParameterSpec& spec, std::mt19937_64& random) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
  const bool is_matrix = spec.shape.rank() > 1;
  const bool is_positive = spec.name == "running_var" || (spec.name == "weight" && !is_matrix);
  const double width = is_matrix ? std::sqrt(3.0 / static_cast<double>(spec.fan.in)) : 0.3;
  std::uniform_real_distribution<double> uniform(-width, width);
  for (float& value : values) value = static_cast<float>((is_positive ? 1.0 : 0.0) + uniform(random));
  return values;
}

void make(const std::string& job_path, const std::filesystem::path& directory, std::uint64_t seed) {
  const jobs::JobOptions job = jobs::load_job(job_path);
  const std::vector<engine::Shape> shapes = job.graph->shapes(1);
  std::mt19937_64 random(seed);
  std::vector<dataflow::NamedTensor> tensors;
  for (const Graph::Node& node : job.graph->nodes()) {
    for (const dataflow::ParameterSpec& spec : Graph::parameters(node, shapes)) {
      tensors.push_back({node.name + "." + spec.name, spec.shape, random_values(spec, random)});
    }
  }
  std::filesystem::create_directories(directory);
  jobs::write_file(directory / "job.txtpb", job.resolved_text);
  jobs::write_safetensors(directory / "model.safetensors", tensors,
                          jobs::to_metadata(jobs::describe_model(job, job.data.class_names)));
}

void run(const std::filesystem::path& directory, std::int64_t batch, const char* input, const char* output) {
  const std::vector<std::string> devices = {"cpu"};
  const jobs::JobOptions job = jobs::load_for_evaluation((directory / "job.txtpb").string(), devices);
  const auto device = engine::open_device(engine::parse_device("cpu"));
  learners::InferenceModel model(
      *job.graph, *device, {.batch = batch, .threads = device->cores(), .output = jobs::output_layer(*job.graph)});
  model.load(jobs::read_finite_model((directory / "model.safetensors").string(), ""));
  learners::InferenceRunner runner(model);
  const dataflow::BatchMemory memory(job.graph->input(), batch, *device);
  const std::span<std::byte> read = memory.batch().front().bytes();
  std::ifstream file(input, std::ios::binary);
  file.read(reinterpret_cast<char*>(read.data()), static_cast<std::streamsize>(read.size()));
  if (!file || file.peek() != EOF) throw std::runtime_error("the input has another size");
  std::ranges::fill(memory.batch().back().bytes(), std::byte{0});
  const std::span<const float> values =
      runner.run({.tensors = memory.batch(), .examples = static_cast<int>(batch)}).output;
  std::ofstream(output, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

void append(std::ofstream& file, const dataflow::InputTensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write_examples(const std::filesystem::path& run, const std::string& data_root, const char* images,
                    const char* labels) {
  const jobs::JobOptions job = jobs::load_for_evaluation((run / "job.txtpb").string(), {});
  engine::host::Pool pool(1);
  std::vector<std::string> warnings;
  const auto data =
      jobs::load_dataset(job.data, data_root, dataflow::Split::kTest, pool, warnings, jobs::Decoding::kOnReading);
  std::ofstream image_file(images, std::ios::binary);
  std::ofstream label_file(labels, std::ios::binary);
  const dataflow::Example values(data->description());
  for (std::int64_t example = 0; example < data->size(); ++example) {
    data->read(example, {}, values.features());
    data->read_label(example, values.label());
    append(image_file, values.features().front());
    append(label_file, values.label());
  }
  image_file.close();
  label_file.close();
  if (!image_file || !label_file) throw std::runtime_error("the examples cannot be written");
}

int main(std::span<char*> arguments) {
  if (arguments.size() == 5 && std::strcmp(arguments[1], "make") == 0) {
    make(arguments[2], arguments[3], std::stoull(arguments[4]));
    return 0;
  }
  if (arguments.size() == 6 && std::strcmp(arguments[1], "run") == 0) {
    run(arguments[2], std::stoll(arguments[3]), arguments[4], arguments[5]);
    return 0;
  }
  if (arguments.size() == 6 && std::strcmp(arguments[1], "examples") == 0) {
    write_examples(arguments[2], arguments[3], arguments[4], arguments[5]);
    return 0;
  }
  std::fputs(
      "usage: model_probe make JOB DIRECTORY SEED | run DIRECTORY BATCH INPUT OUT | examples RUN ROOT IMAGES LABELS\n",
      stderr);
  return 2;
}

}  // namespace

}  // namespace arbalest::tests

int main(int argc, char** argv) {
  try {
    return arbalest::tests::main({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model_probe: %s\n", error.what());
    return 1;
  }
}
