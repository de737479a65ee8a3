/* Bindings of others than claimguard: of a scheduler without extender, or of anyone who may post
 * them; and the pods that users create. */
#include <stdio.h>
#include <stdlib.h>

#include "simulation/admission.h"

/* One on its way. */
struct letter {
    char path[64], body[256];
    bool is_dry_run;
    struct sim_pod *pod; /* of a Binding; NULL: it creates one, each time that it arrives */
    struct client_creation creation;
    stored *then; /* NULL: nobody waits (any more) */
    void *context;
};

/* A copy. then: of the copy. */
static struct letter *copy(const struct letter *from, stored *then)
{
    struct letter *letter = malloc(sizeof *letter);

    if (letter == NULL)
        abort();
    *letter = *from;
    letter->then = then;
    return letter;
}

static void fail(void *context)
{
    struct letter *letter = context;

    if (letter->then != NULL)
        letter->then(letter->context, 0, SLICE(""));
    free(letter);
}

static void deliver_binding(const struct letter *letter)
{
    trace("POST %s by a client%s: %s", letter->path, letter->is_dry_run ? " (dry run)" : "",
          letter->body);
    if (!letter->is_dry_run)
        letter->pod->reviewed_ns = letter->pod->bind_ns = world.now_ns;
    post_arrives(&(struct posted){.path = letter->path,
                                  .body = letter->body,
                                  .is_dry_run = letter->is_dry_run,
                                  .looked_ns = world.now_ns},
                 letter->then, letter->context);
}

/* The API server drops what it does not know, and gives the pod its UID. */
static void deliver_creation(const struct letter *letter)
{
    const struct client_creation *creation = &letter->creation;
    struct sim_pod *pod = server_name_pod(creation->name, &creation->properties, creation->node);
    struct buf body;

    if (pod == NULL) {
        fail(copy(letter, letter->then));
        return;
    }
    pod->fields = world.field == FIELD_KNOWN ? pod->fields : 0;
    if (!letter->is_dry_run && pod->node >= 0)
        pod->reviewed_ns = pod->bind_ns = world.now_ns;
    buf_init(&body, 1 << 16);
    server_write_pod(pod, &body);
    trace("POST of pod %s (%s), node %d%s", pod->name, pod->uid + 24, pod->node,
          letter->is_dry_run ? " (dry run)" : "");
    post_arrives(&(struct posted){.path = "/api/v1/namespaces/ns/pods",
                                  .body = buf_text(&body),
                                  .created = pod,
                                  .is_dry_run = letter->is_dry_run,
                                  .looked_ns = world.now_ns},
                 letter->then, letter->context);
    buf_dispose(&body);
}

static void deliver(void *context)
{
    struct letter *letter = context;

    if (world.now_ns < world.api_down_until_ns) {
        fail(letter);
        return;
    }
    (letter->pod == NULL ? deliver_creation : deliver_binding)(letter);
    free(letter);
}

static uint64_t draw_delay(void)
{
    return below(world.has_faults && one_in(20) ? 5 * SECOND : 10 * MILLISECOND);
}

/* Takes the letter: it is lost, or its answer is, or it is sent twice. */
static void send(struct letter *letter)
{
    if (world.has_faults && one_in(20)) {
        world.repeated++;
        later(draw_delay(), true, deliver, copy(letter, NULL));
    }
    if (world.has_faults && one_in(20)) {
        world.lost++;
        if (one_in(2))
            later(draw_delay(), true, deliver, copy(letter, NULL));
        later(draw_delay(), true, fail, letter);
    } else {
        later(draw_delay(), true, deliver, letter);
    }
}

void client_post(const struct client_binding *binding, stored *then, void *context)
{
    struct letter letter = {
        .is_dry_run = binding->is_dry_run, .pod = binding->pod, .context = context};
    const char *uid = binding->pod->uid;

    (void)snprintf(letter.path, sizeof letter.path, PODS_PATH "%s/binding", binding->pod->name);
    (void)snprintf(letter.body, sizeof letter.body,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
                   "\"namespace\":\"ns\"%s%s%s},\"target\":{\"kind\":\"Node\",\"name\":"
                   "\"node-%d\"}}",
                   binding->pod->name, binding->has_no_uid ? "" : ",\"uid\":\"",
                   binding->has_no_uid ? "" : uid, binding->has_no_uid ? "" : "\"", binding->node);
    send(copy(&letter, then));
}

void client_create(const struct client_creation *creation, stored *then, void *context)
{
    struct letter letter = {
        .is_dry_run = creation->is_dry_run, .creation = *creation, .context = context};

    send(copy(&letter, then));
}
