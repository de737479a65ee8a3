#include "unit/extender/nodes_bench.h"

#include "extender/cli/services.h"

struct state state;
struct scratch scratch;

void apply(const struct object *object)
{
    struct error err = {0};

    cr_assert_eq(cluster_apply(&state.cluster, object, &err), 0, "%s", err.message);
}

void nodes_setup(void)
{
    struct config *config;
    struct error err = {0};
    struct claim_reference held = {.name = SLICE("held")};
    struct object claim = {.kind = KIND_CLAIM}, holder = {.kind = KIND_POD};

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    for (int i = 0; i < 2; i++) {
        claim.meta = (struct meta){.ns = SLICE("ns"), .name = slice_of(i == 0 ? "free" : "held")};
        claim.claim = (struct claim_object){.meta = claim.meta, .is_rwop = true};
        apply(&claim);
    }
    holder.meta = (struct meta){.ns = SLICE("ns"),
                                .name = SLICE("holder"),
                                .uid = SLICE("10000000-0000-4000-8000-000000000000")};
    holder.pod = (struct pod_object){
        .meta = holder.meta, .node = SLICE("node-2"), .claims = &held, .claim_count = 1};
    apply(&holder);
    scratch_init(&scratch, BODY_BYTES_MAX, NULL);
}

void nodes_teardown(void)
{
    scratch_dispose(&scratch);
    services_dispose(&state);
}

void expect_equal(const json_t *answer, const char *key, const char *want)
{
    json_t *expected = json_loads(want, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(json_object_get(answer, key), JSON_ENCODE_ANY);

    cr_expect(json_equal(json_object_get(answer, key), expected), "%s is %s", key, text);
    json_decref(expected);
    free(text);
}
