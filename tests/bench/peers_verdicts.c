/* The peers' verdicts: a comparison of times says something only if all give the same. */
#include <jansson.h>
#include <stdio.h>

#include "peers.h"
#include "support/http.h"

enum { SPREAD_CALLS = 400, SPREAD_NAMES = 20, ALL_NAMES = 5000 };

static const char *const names[PEERS] = {"claimguard", "the Go extender", "VolumeRestrictions"};

/* The nodes that passed, as the answer lists them, and those that did not, as keys. */
struct verdict {
    json_t *passed, *rejected;
};

static struct verdict ask(const struct child *child, const char *body)
{
    struct response response;
    const char *key;
    json_t *reason;

    http_call(child->port, "POST", "/filter", body, &response);
    json_t *answer = response.status == 200 ? json_loads(response.body, 0, NULL) : NULL;
    response_free(&response);
    struct verdict verdict = {json_incref(json_object_get(answer, "NodeNames")), json_object()};
    const char *error = json_string_value(json_object_get(answer, "Error"));
    if (!json_is_array(verdict.passed) || (error != NULL && *error != '\0'))
        bench_die("peers: no verdict");
    json_object_foreach (json_object_get(answer, "FailedNodes"), key, reason)
        (void)json_object_set_new(verdict.rejected, key, json_true());
    json_object_foreach (json_object_get(answer, "FailedAndUnresolvableNodes"), key, reason)
        (void)json_object_set_new(verdict.rejected, key, json_true());
    json_decref(answer);
    return verdict;
}

/* Whether nodes were rejected. */
static bool compare(const struct child children[PEERS], const char *body, unsigned asked)
{
    struct verdict first = ask(&children[0], body);
    bool is_rejected = json_object_size(first.rejected) != 0;

    if (json_array_size(first.passed) + json_object_size(first.rejected) != asked)
        bench_die("peers: an answer without each node");
    for (enum peer i = 1; i < PEERS; i++) {
        struct verdict other = ask(&children[i], body);
        if (!json_equal(first.passed, other.passed) ||
            !json_equal(first.rejected, other.rejected)) {
            (void)fprintf(stderr, "bench: peers: %s rejects %zu nodes, %s %zu:\n%s\n", names[0],
                          json_object_size(first.rejected), names[i],
                          json_object_size(other.rejected), body);
            bench_die("peers: different verdicts");
        }
        json_decref(other.passed);
        json_decref(other.rejected);
    }
    json_decref(first.passed);
    json_decref(first.rejected);
    return is_rejected;
}

static void check(struct checked *checked, const struct child children[PEERS],
                  const struct model *model, long claim, unsigned asked)
{
    struct buf body;

    buf_init(&body, 64 << 20);
    model_put_filter(model, claim, asked, &body);
    checked->calls++;
    checked->rejected += compare(children, buf_text(&body), asked);
    buf_dispose(&body);
}

struct checked peers_compare(const struct child children[PEERS], const struct model *model)
{
    const long claims[] = {-1, bench_find_claim(model, true, false),
                           bench_find_claim(model, true, true),
                           bench_find_claim(model, false, true), (long)model->claims /* none */};
    struct checked checked = {0};

    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
        check(&checked, children, model, claims[i], ALL_NAMES);
    for (unsigned i = 0; i < SPREAD_CALLS; i++)
        check(&checked, children, model,
              (long)((i * UINT64_C(2654435761)) % (model->claims + model->claims / 10)),
              SPREAD_NAMES);
    if (checked.rejected == 0 || checked.rejected == checked.calls)
        bench_die("peers: all calls got the same verdict");
    return checked;
}
