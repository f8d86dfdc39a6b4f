// The state of an import, which the functions for the kinds of nodes share.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interchange/import/graph/layer_list.h"
#include "interchange/import/graph/node_reader.h"
#include "interchange/import/graph/value.h"

namespace arbalest::jobs {

class GraphImport {
 public:
  // `reads`: how often each value is read. `keeps_names`: whether layers get the names of nodes as they are.
  // `fixed_batch`: the number of examples for which the file was made, if it is fixed.
  GraphImport(engine::Shape input, std::map<std::string, int> reads, bool keeps_names,
              std::optional<std::int64_t> fixed_batch)
      : layers_(input), reads_(std::move(reads)), keeps_names_(keeps_names), fixed_batch_(fixed_batch) {}

  LayerList& layers() noexcept { return layers_; }
  std::int64_t operator_set = 1;
  std::size_t most_computed = 0;     // see count_made()
  std::set<std::string> parameters;  // of the network before it was exported, if the file lists them
  bool scales_channels = false;      // whether a layer's output is scaled by a constant for each channel

  void define(const std::string& name, Value value) { values_.insert_or_assign(name, std::move(value)); }
  const Value* find(const std::string& name) const;

  // The node's k-th input. Null if it is left out. Throws NodeRefused if no node and no initializer defines it.
  const Value* input(const NodeReader& node, int k) const;
  // Whether the node's k-th input is there.
  bool has_input(const NodeReader& node, int k) const;
  // These throw NodeRefused if the input is something else. `what`: "its weights".
  Tensor tensor(const NodeReader& node, int k);
  const Constant& constant(const NodeReader& node, int k, const char* what) const;
  // Null if the input is left out.
  const Constant* optional_constant(const NodeReader& node, int k, const char* what) const;
  // These two also refuse integers.
  const Constant& numbers(const NodeReader& node, int k, const char* what) const;
  const Constant* optional_numbers(const NodeReader& node, int k, const char* what) const;
  // Null if the input is no part of a formula of this kind.
  const Formula* formula(const NodeReader& node, int k, Formula::Kind kind) const;
  // A tensor whose dimensions have the order that layers need.
  Tensor channels_first_tensor(const NodeReader& node, int k);
  // The value as a tensor: a formula that is a layer by itself becomes one.
  Tensor as_tensor(const NodeReader& node, const Value& value);

  // Sets the node's first output.
  void put(const NodeReader& node, Value value);
  // Adds a layer, and sets the node's first output.
  void add(const NodeReader& node, ImportedLayer layer, const std::vector<Tensor>& inputs);

  // The name of a layer that is made of `node` with these weights ("" or the name of an initializer).
  std::string name_for(const NodeReader& node, const std::string& weight = "") const;

  // Whether the layer with these weights had a bias before exporters left it out, because all of it was 0.
  bool has_lost_bias(const Constant& weights) const;

  // Whether a layer is one step of what our own exporter has made of the layer `name`. In files of other programs names
  // tell nothing.
  bool is_step_of(const std::string& step, const std::string& name, const char* part) const {
    return !keeps_names_ || step == name + "/" + part;
  }

  // Facts that the user should know.
  void note(std::string text);
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  // Notes that a weight is used.
  void use_weight(const Constant& constant);

  // Counts elements of constants that are computed. Throws NodeRefused if there are too many: a small file can ask for
  // any number.
  void count_made(std::size_t elements);
  // Throws like count_made(), but counts nothing. Call it before elements are computed.
  void check_room(std::size_t elements) const;

  std::optional<std::int64_t> fixed_batch() const noexcept { return fixed_batch_; }

 private:
  Tensor shifted(const std::string& name, const Tensor& x);  // x + 3

  LayerList layers_;
  std::map<std::string, int> reads_;
  bool keeps_names_;
  std::optional<std::int64_t> fixed_batch_;
  std::map<std::string, Value> values_;
  std::map<std::string, int> weight_uses_;
  std::vector<std::string> notes_;
  std::size_t made_ = 0;  // elements
};

// Thrown for a node that reads the output of one that cannot be imported: it is not listed.
class FollowsUnknown final : public std::exception {};

// A weight of a layer.
dataflow::NamedTensor weight_of(const char* name, engine::Shape shape, std::vector<float> values);

// Puts numbers for each feature of a vector from the file's order into ours.
std::vector<float> in_our_order(const std::vector<float>& numbers, const Tensor& vector);

// The constant as one number for each of the tensor's channels or features; none if it has another shape. A single
// number counts for all.
std::optional<std::vector<float>> per_channel(const Constant& constant, const Tensor& tensor);

// Adds a layer that computes scale * x + shift for each channel: for images a convolution of one pixel that joins no
// channels, for vectors batch norm with the statistics 0 and 1. `shift`: empty for none.
Tensor add_affine(GraphImport& graph, const std::string& name, const Tensor& x, std::vector<float> scale,
                  std::vector<float> shift);

}  // namespace arbalest::jobs
