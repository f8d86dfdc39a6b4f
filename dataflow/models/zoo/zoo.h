// The zoo: models that expand a few options into a list of layers.
#pragma once

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

// Expands `zoo`, which must have its defaults (fill_defaults), into the layers that a job file would list for data of
// the form `input`; values equal to the schema's defaults are omitted. Returns no layers if the options are wrong or do
// not fit the data; the issues have paths that begin with "zoo". Also returns none if `input` has no classes, which
// means that the data is unknown.
LayerMessages expand(const v1::Zoo& zoo, const InputDescription& input, FieldIssues& issues);

}  // namespace arbalest::dataflow
