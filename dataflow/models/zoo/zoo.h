// The zoo: models that are listed layer by layer from a few options.
#pragma once

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

// The layers that `zoo`, which has its defaults (fill_defaults), stands for with data of the form `input`, as a job
// file would list them; what has the schema's default is left out. None if the options are wrong, or do not fit the
// data, which is added to `issues` with paths that begin with "zoo"; or if `input` has no classes, which says that
// nothing is known of the data.
LayerMessages expand(const v1::Zoo& zoo, const InputDescription& input, FieldIssues& issues);

}  // namespace arbalest::dataflow
