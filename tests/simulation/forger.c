/* Someone who reaches the scheduler's port knows a pod's UID, and says what he likes about it; and
 * someone who may post Bindings does, for a pod that is being bound. */
#include <stdlib.h>

#include "simulation/admission.h"

struct forged {
    const struct sim_pod *pod;
    unsigned replica;
};

static void ignore_answer(void *context, const char *answer)
{
    (void)context;
    (void)answer;
}

static void put_forged_bind(struct buf *body, const struct sim_pod *pod)
{
    buf_printf(body,
               "{\"PodName\":\"forged\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":"
               "\"node-0\"}",
               pod->uid);
}

/* Of the lowest priority: a higher one takes reservations over, as it may. */
static void put_forged_filter(struct buf *body, const struct sim_pod *pod)
{
    unsigned claims = (unsigned)below(1 << CLAIMS);
    const char *separator = "";

    buf_printf(body,
               "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\"},"
               "\"spec\":{\"priority\":0,\"volumes\":[",
               one_in(2) ? pod->name : "forged", pod->uid);
    for (unsigned i = 0; i < CLAIMS; i++)
        if ((claims >> i & 1) != 0) {
            buf_printf(body,
                       "%s{\"name\":\"v%u\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}",
                       separator, i, world.server.claims[i].name);
            separator = ",";
        }
    buf_printf(body, "]}},\"NodeNames\":[\"node-0\"]}");
}

static void forge(struct forged *forged)
{
    enum verb verb = one_in(4) ? VERB_BIND : VERB_FILTER;
    struct buf body;

    buf_init(&body, 1 << 16);
    (verb == VERB_BIND ? put_forged_bind : put_forged_filter)(&body, forged->pod);
    trace("forged: %s", buf_text(&body));
    replica_call(forged->replica, verb, buf_text(&body), ignore_answer, NULL);
    buf_dispose(&body);
}

static void forge_now(void *context)
{
    if (!world.is_over)
        forge(context);
    free(context);
}

void forge_sometimes(struct sim_pod *pod, unsigned replica)
{
    if (world.has_admission && one_in(6))
        client_post(&(struct client_binding){.pod = pod, .node = (int)below(NODES)}, NULL, NULL);
    if (!world.is_hard || !world.has_faults || !one_in(10))
        return;
    struct forged *forged = malloc(sizeof *forged);
    if (forged == NULL)
        abort();
    *forged = (struct forged){pod, replica};
    later(below(50 * MILLISECOND), true, forge_now, forged);
}
