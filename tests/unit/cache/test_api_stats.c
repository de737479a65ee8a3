/* Requests to the API server by verb and resource, as metrics count them. */
#include <criterion/criterion.h>

#include "cache/client/api_stats.h"

static const struct {
    const char *method, *path; /* method NULL: GET, as http_client has it */
    enum api_verb verb;
    unsigned resource;
} requests[] = {
    {NULL, "/api/v1/namespaces/shop/pods/web-0", API_VERB_GET, KIND_POD},
    {"GET", "/api/v1/namespaces/shop/pods/web-0", API_VERB_GET, KIND_POD},
    {NULL, "/api/v1/pods?limit=500", API_VERB_LIST, KIND_POD},
    {NULL, "/api/v1/pods?watch=1&resourceVersion=7", API_VERB_WATCH, KIND_POD},
    {NULL, "/apis/storage.k8s.io/v1/csinodes?watch=1", API_VERB_WATCH, KIND_CSI_NODE},
    {"PATCH", "/api/v1/namespaces/shop/pods/web-0", API_VERB_PATCH, KIND_POD},
    {"PATCH", "/api/v1/namespaces/shop/pods/web-0/status", API_VERB_PATCH, KIND_POD},
    {"DELETE", "/api/v1/namespaces/shop/pods/web-0", API_VERB_DELETE, KIND_POD},
    {"POST", "/api/v1/namespaces/shop/pods/web-0/binding", API_VERB_CREATE, API_RESOURCE_BINDING},
    {"POST", "/api/v1/namespaces/shop/pods/web-0/eviction", API_VERB_CREATE, API_RESOURCE_EVICTION},
    {"POST", "/api/v1/namespaces/shop/events", API_VERB_CREATE, API_RESOURCE_EVENTS},
    {NULL, "/openapi/v3/api/v1", API_VERB_GET, API_RESOURCE_OTHER},
};

Test(api_stats, a_request_has_a_verb_and_a_resource)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct api_target target = api_target_of(requests[i].method, requests[i].path);
        cr_expect_eq(target.verb, requests[i].verb, "%s: %d", requests[i].path, target.verb);
        cr_expect_eq(target.resource, requests[i].resource, "%s: %u", requests[i].path,
                     target.resource);
    }
}

Test(api_stats, each_status_has_a_count_and_the_last_is_for_all_others)
{
    static struct api_stats stats;
    struct api_target target = {API_VERB_GET, KIND_POD};
    unsigned last = API_CODES - 1;

    api_stats_count(&stats, target, 299, 1);
    api_stats_count(&stats, target, 299, 1);
    cr_expect_eq(atomic_load(&stats.requests[API_VERB_GET][KIND_POD][last]), 2);
    api_stats_count(&stats, target, 200, 1);
    cr_expect_eq(atomic_load(&stats.requests[API_VERB_GET][KIND_POD][last]), 2);
}
