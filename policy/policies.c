/* In a file of its own: a test that brings policies of its own leaves this one out. */
#include "policy/read_write_once_pod.h"

const struct policy *const policies[] = {&read_write_once_pod, NULL};
