/* A file of its own, so that a test can link other policies in its place. */
#include "policy/csi_volumes.h"
#include "policy/read_write_once.h"
#include "policy/read_write_once_pod.h"
#include "policy/volume_attributes_class.h"

const struct policy *const policies[POLICIES_MAX + 1] = {
    &read_write_once_pod, &csi_volumes, &volume_attributes_class, &read_write_once, NULL};
