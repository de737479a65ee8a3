#include "cache/cluster/priority_class.h"

#include "cache/cluster/cluster_internal.h"

static struct priority_class describe(const struct resource *resource)
{
    struct slice policy = resource_attribute(resource, PRIORITY_CLASS_PREEMPTION_POLICY);

    return (struct priority_class){(int32_t)resource_number(resource),
                                   slice_equal(policy, SLICE("Never"))};
}

/* Only a race creates two defaults. Admission takes the lowest then. */
static const struct resource *find_default(const struct cluster *cluster)
{
    const struct resource *found = NULL;
    struct table_walk walk = {.at = 0};

    for (const struct resource *resource;
         (resource = cluster_next_resource(cluster, KIND_PRIORITY_CLASS, &walk)) != NULL;)
        if (resource_attribute(resource, PRIORITY_CLASS_DEFAULT).len != 0 &&
            (found == NULL || resource_number(resource) < resource_number(found)))
            found = resource;
    return found;
}

bool priority_class_find(const struct cluster *cluster, struct slice name,
                         struct priority_class *out)
{
    const struct resource *resource =
        name.len == 0 ? find_default(cluster)
                      : resource_find(cluster, KIND_PRIORITY_CLASS, SLICE(""), name);

    *out = (struct priority_class){.value = 0};
    if (resource != NULL)
        *out = describe(resource);
    else if (slice_equal(name, SLICE("system-cluster-critical")))
        out->value = 2000000000;
    else if (slice_equal(name, SLICE("system-node-critical")))
        out->value = 2000001000;
    else
        return name.len == 0;
    return true;
}
