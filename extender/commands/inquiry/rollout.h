/*
 * rollout: how many pods a Deployment's rollout adds before, and removes before, as
 * k8s.io/kubernetes/pkg/controller/deployment/util computes it. Pure. Threads: any.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_ROLLOUT_H
#define EXTENDER_COMMANDS_INQUIRY_ROLLOUT_H

#include <stdint.h>

#include "config/base/slice.h"

/* A number of pods, or a percentage of the replicas: an IntOrString of Kubernetes. */
enum amount_unit { AMOUNT_UNSET, AMOUNT_PODS, AMOUNT_PERCENT, AMOUNT_INVALID };

struct amount {
    enum amount_unit unit;
    int64_t value;
};

/* Reads the JSON of an amount: 1, "25%", null. */
struct amount amount_of(struct slice json);

struct rollout_spec {
    int64_t replicas;
    struct slice strategy; /* empty: the default, RollingUpdate */
    struct amount surge, unavailable;
};

struct rollout {
    bool is_known; /* false: the API server would refuse these values */
    bool is_recreate;
    int64_t surge;       /* pods that it may have above the replicas */
    int64_t unavailable; /* of the replicas that need not be available */
};

struct rollout rollout_of(const struct rollout_spec *spec);

/* Whether the first new pod has to be Ready before an old one is removed. */
bool rollout_adds_first(const struct rollout_spec *spec);

#endif
