#include "cache/client/api_stats.h"

#include <stdio.h>

/* The statuses of an API server. All others count as one code, and so does a missing answer. */
static const struct {
    unsigned status;
    const char *text;
} codes[API_CODES] = {
    {0, "error"}, {200, "200"}, {201, "201"}, {202, "202"}, {400, "400"},
    {401, "401"}, {403, "403"}, {404, "404"}, {405, "405"}, {406, "406"},
    {409, "409"}, {410, "410"}, {413, "413"}, {422, "422"}, {429, "429"},
    {500, "500"}, {502, "502"}, {503, "503"}, {504, "504"}, {UINT32_MAX, "other"},
};

static unsigned resource_of(struct slice resource, struct slice subresource)
{
    if (slice_equal(subresource, SLICE("binding")))
        return API_RESOURCE_BINDING;
    if (slice_equal(subresource, SLICE("eviction")))
        return API_RESOURCE_EVICTION;
    if (slice_equal(resource, SLICE("events")))
        return API_RESOURCE_EVENTS;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        if (slice_equal(resource, slice_of(kind_resource((enum kind)kind))))
            return kind;
    return API_RESOURCE_OTHER;
}

static enum api_verb verb_of(const char *method, struct slice query, bool has_name)
{
    if (method != NULL && strcmp(method, "POST") == 0)
        return API_VERB_CREATE;
    if (method != NULL && strcmp(method, "PATCH") == 0)
        return API_VERB_PATCH;
    if (method != NULL && strcmp(method, "DELETE") == 0)
        return API_VERB_DELETE;
    if (has_name)
        return API_VERB_GET;
    return slice_has(query, SLICE("watch=1")) ? API_VERB_WATCH : API_VERB_LIST;
}

/* /api/v1/... or /apis/GROUP/VERSION/..., then [namespaces/NAMESPACE/]RESOURCE[/NAME[/MORE]] */
struct api_target api_target_of(const char *method, const char *path)
{
    size_t length = strcspn(path, "?");
    struct slice rest = {path, length}, query = slice_of(path + length);

    (void)slice_cut(&rest, '/'); /* before the first slash */
    struct slice root = slice_cut(&rest, '/');
    bool is_api = slice_equal(root, SLICE("api")), is_group = slice_equal(root, SLICE("apis"));
    if (!is_api && !is_group)
        return (struct api_target){verb_of(method, query, true), API_RESOURCE_OTHER};
    (void)slice_cut(&rest, '/');
    if (is_group)
        (void)slice_cut(&rest, '/');
    struct slice resource = slice_cut(&rest, '/');
    if (slice_equal(resource, SLICE("namespaces"))) {
        (void)slice_cut(&rest, '/');
        resource = slice_cut(&rest, '/');
    }
    struct slice name = slice_cut(&rest, '/');
    return (struct api_target){verb_of(method, query, name.len != 0), resource_of(resource, rest)};
}

void api_stats_count(struct api_stats *stats, struct api_target target, unsigned status,
                     uint64_t duration_ns)
{
    unsigned code = 0;

    while (code < API_CODES - 1 && codes[code].status != status)
        code++;
    atomic_fetch_add_explicit(&stats->requests[target.verb][target.resource][code], 1,
                              memory_order_relaxed);
    if (target.verb != API_VERB_WATCH)
        histogram_observe(&stats->durations[target.verb], duration_ns);
}

const char *api_verb_text(enum api_verb verb)
{
    static const char *const texts[API_VERB_COUNT] = {"get",    "list",  "watch",
                                                      "create", "patch", "delete"};
    return texts[verb];
}

const char *api_resource_text(unsigned resource)
{
    static const char *const texts[] = {"events", "pods/binding", "pods/eviction", "other"};

    return resource < KIND_COUNT ? kind_resource((enum kind)resource)
                                 : texts[resource - KIND_COUNT];
}

const char *api_code_text(unsigned code)
{
    return codes[code].text;
}
