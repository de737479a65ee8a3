/* A file of its own, so that a test can link other policies in its place. */
#include "policy/policy.h"

const struct policy *const policies[POLICIES_MAX + 1] = {
    &read_write_once_pod, &csi_volumes,        &volume_attributes_class,
    &read_write_once,     &node_volume_limits, &volume_binding,
    &volume_zone};
