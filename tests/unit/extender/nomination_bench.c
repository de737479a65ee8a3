#include "unit/extender/nomination_bench.h"

#include <stdio.h>

#include "extender/cli/services.h"

struct state state;
struct arena arena;

atomic_uint sent;
char last_body[512];
bool is_sending = true;

static atomic_uint_fast64_t now_ns = 1000 * NS_PER_MS;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return now_ns;
}

void pass_ms(uint64_t ms)
{
    now_ns += ms * NS_PER_MS;
}

bool __wrap_requests_send(struct requests *requests, const struct request *request);
bool __wrap_requests_send(struct requests *requests, const struct request *request)
{
    (void)requests;
    if (!is_sending)
        return false;
    cr_expect_str_eq(request->method, "PATCH");
    cr_expect_str_eq(request->suffix, "/status");
    cr_expect(slice_has(request->object.name, SLICE("web-listed")));
    (void)snprintf(last_body, sizeof last_body, "%.*s", SLICE_ARG(request->body));
    sent++;
    return true;
}

unsigned asked;
bool has_no_memory, is_error;

void __real_policy_prefilter(const struct view *view, const struct pod_object *pod,
                             struct arena *verdict_arena, struct verdict *out);
void __wrap_policy_prefilter(const struct view *view, const struct pod_object *pod,
                             struct arena *verdict_arena, struct verdict *out);
void __wrap_policy_prefilter(const struct view *view, const struct pod_object *pod,
                             struct arena *verdict_arena, struct verdict *out)
{
    asked++;
    __real_policy_prefilter(view, pod, verdict_arena, out);
    if (is_error)
        verdict_out_of_memory(out);
}

bool __real_cluster_describe_pod(const struct pod *pod, struct arena *pod_arena,
                                 struct pod_object *out);
bool __wrap_cluster_describe_pod(const struct pod *pod, struct arena *pod_arena,
                                 struct pod_object *out);
bool __wrap_cluster_describe_pod(const struct pod *pod, struct arena *pod_arena,
                                 struct pod_object *out)
{
    return !has_no_memory && __real_cluster_describe_pod(pod, pod_arena, out);
}

void put_node(const char *name, int64_t flags)
{
    struct object node = {.kind = KIND_NODE};
    struct error err = {0};

    node.meta.name = slice_of(name);
    node.resource.number = flags;
    cr_assert_eq(cluster_apply(&state.cluster, &node, &err), 0);
}

struct pod_object waiting = {
    .meta = {.ns = {"ns", 2}, .name = {"web-listed", 10}, .uid = {UID, 36}},
    .phase = {"Pending", 7}};

void put_pod(const char *nominated, const char *version)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    pod.pod.nominated_node = slice_of(nominated);
    pod.meta.resource_version = slice_of(version);
    cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
}

void bench_setup(void)
{
    struct config *config;
    struct error err = {0};

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    state.api = (struct requests *)(void *)&sent; /* requests_send is ours */
    arena_init(&arena, 1 << 20);
    put_node("node-1", NODE_IS_NOT_READY);
    put_node("node-2", NODE_IS_UNSCHEDULABLE);
    put_node("node-3", 0);
    put_node("node-4", 0);
    put_pod("", "1");
}

void bench_teardown(void)
{
    arena_dispose(&arena);
    services_dispose(&state);
}

void want(const char *node)
{
    nomination_want(state.nominations, &waiting.meta, slice_of(node));
}

void expect_sent(unsigned more)
{
    unsigned before = sent;

    nomination_tick(&state);
    cr_expect_eq(atomic_load(&sent), before + more, "%u sent", sent - before);
}

void send_to(const char *node)
{
    want(node);
    pass_ms(NOMINATION_QUIET_MS);
    expect_sent(1);
}

void nominate(const char *node)
{
    send_to(node);
    put_pod(node, "2");
}

void expect_count(enum nomination_result result, unsigned count)
{
    cr_expect_eq(atomic_load(&state.nominations->results[result]), count);
}

void expect_sent_in(unsigned seconds, unsigned more)
{
    unsigned before = sent;

    for (unsigned i = 0; i < seconds; i++) {
        pass_ms(1000);
        nomination_tick(&state);
    }
    cr_expect_eq(atomic_load(&sent), before + more, "%u sent", sent - before);
}

void expect_known(unsigned count)
{
    unsigned known = 0;

    for (unsigned share = 0; share < SHARES; share++)
        known += state.nominations->pods_in[share];
    cr_expect_eq(known, count, "%u pods", known);
}
