#include "extender/commands/verify/races.h"

#include <stdio.h>

enum {
    RACERS = 2,
    NAME_BYTES = 32,
};

static const struct {
    const char *text;
    unsigned races;
    bool is_in_turn; /* the first one is bound on the other path, before the second one */
} rows_tried[VERIFY_ROW_COUNT] = {
    [VERIFY_BINDING] = {"a client that posts to pods/binding", 8, false},
    [VERIFY_OLD_PATH] = {"a client that posts to bindings", 3, true},
    [VERIFY_NODE_NAME] = {"nobody: the pod has spec.nodeName", 8, false},
    [VERIFY_SCHEDULER] = {"a scheduler with the extender", 1, false},
    [VERIFY_AWAY] = {"while claimguard does not answer", 0, false},
};

const char *verify_who_text(enum verify_who who)
{
    return rows_tried[who].text;
}

/* ---- a race ---- */

struct racer {
    char name[NAME_BYTES];
    struct slice uid;
    struct request request; /* that binds it */
};

struct race {
    enum verify_who who;
    char claim[NAME_BYTES];
    struct racer racers[RACERS];
    unsigned bound;       /* how many have a node at its end */
    struct slice refusal; /* what the API server said of one that has none */
};

/* Of all races of a row. */
struct tally {
    unsigned stopped, lost, stuck; /* one pod has the claim; two; none */
    struct slice refusal;
};

static int prepare(struct trial *trial, struct race *race, unsigned number, struct error *err)
{
    (void)snprintf(race->claim, sizeof race->claim, "claim-%d-%u", race->who, number);
    if (trial_claim(trial, race->claim, false, err) < 0)
        return err->code;
    for (int i = 0; i < RACERS; i++) {
        struct racer *racer = &race->racers[i];
        (void)snprintf(racer->name, sizeof racer->name, "pod-%d-%u-%d", race->who, number, i);
        const struct trial_pod pod = {racer->name, race->claim, NULL,
                                      race->who == VERIFY_NODE_NAME};
        if (!pod.names_node && trial_create_pod(trial, &pod, &racer->uid, err) < 0)
            return err->code;
        racer->request = pod.names_node
                             ? trial_pod_request(trial, &pod, "")
                             : trial_binding_request(trial, racer->name, racer->uid,
                                                     race->who == VERIFY_OLD_PATH && i == 1, "");
        if (racer->request.path == NULL)
            return error_no_memory(err);
    }
    return 0;
}

/* What a webhook says is kept before anything else: that a pod is there already says nothing. */
static void take_refusal(struct race *race, const struct request_answer *answer)
{
    bool is_webhook = slice_has(answer->message, SLICE("webhook"));

    if (answer->status / 100 != 2 && (race->refusal.len == 0 || is_webhook))
        race->refusal = answer->message;
}

static int bind_in_turn(struct trial *trial, struct race *race, struct error *err)
{
    struct request_answer answer = {.status = 0};

    for (int i = 0; i < RACERS; i++) {
        if (trial_check_time(trial, err) < 0 ||
            api_call(trial->api, &race->racers[i].request, &answer, err) < 0)
            return err->code;
        take_refusal(race, &answer);
    }
    return 0;
}

static int bind_at_once(struct trial *trial, struct race *race, struct error *err)
{
    struct request requests[RACERS];
    struct request_answer answers[RACERS];

    for (int i = 0; i < RACERS; i++)
        requests[i] = race->racers[i].request;
    if (trial_check_time(trial, err) < 0 ||
        api_call_all(trial->api, requests, RACERS, answers, err) < 0)
        return err->code;
    for (int i = 0; i < RACERS; i++)
        take_refusal(race, &answers[i]);
    return 0;
}

static int count_bound(struct trial *trial, struct race *race, struct error *err)
{
    struct trial_object pod;

    for (int i = 0; i < RACERS; i++) {
        if (trial_read(trial, "pods", race->racers[i].name, &pod, err) < 0)
            return err->code;
        race->bound += pod.node.len != 0;
    }
    for (int i = 0; i < RACERS; i++)
        if (trial_remove(trial, "pods", race->racers[i].name, err) < 0)
            return err->code;
    return trial_remove(trial, "persistentvolumeclaims", race->claim, err);
}

static int run_race(struct trial *trial, enum verify_who who, unsigned number, struct tally *tally,
                    struct error *err)
{
    struct race race = {.who = who};

    if (prepare(trial, &race, number, err) < 0 ||
        (!rows_tried[who].is_in_turn && bind_at_once(trial, &race, err) < 0) ||
        bind_in_turn(trial, &race, err) < 0 || count_bound(trial, &race, err) < 0)
        return err->code;
    tally->stopped += race.bound == 1;
    tally->lost += race.bound > 1;
    tally->stuck += race.bound == 0;
    if (race.refusal.len != 0)
        tally->refusal = race.refusal;
    return 0;
}

static int run_races(struct trial *trial, enum verify_who who, struct verify_row *row,
                     struct error *err)
{
    struct arena *arena = &trial->api->arena;
    unsigned count = rows_tried[who].races;
    struct tally tally = {.stopped = 0};

    for (unsigned i = 0; i < count; i++)
        if (run_race(trial, who, i, &tally, err) < 0)
            return err->code;
    row->holds = tally.stopped == count ? HOLDS_YES : HOLDS_NO;
    row->has_two = tally.lost != 0;
    if (tally.lost != 0)
        row->seen = arena_printf(arena, "%u of %u claims got two pods", tally.lost, count);
    else if (tally.stuck != 0)
        row->seen = arena_printf(arena, "%u of %u claims got no pod: %.*s", tally.stuck, count,
                                 SLICE_ARG(tally.refusal));
    else
        row->seen = arena_printf(arena, "%u of %u claims got one pod: %.*s", count, count,
                                 SLICE_ARG(tally.refusal));
    return row->seen.ptr == NULL ? error_no_memory(err) : 0;
}

/* ---- all ---- */

int races_run(struct trial *trial, const char *scheduler, struct verify_row *rows,
              struct error *err)
{
    for (int who = VERIFY_BINDING; who <= VERIFY_NODE_NAME; who++)
        if (run_races(trial, (enum verify_who)who, &rows[who], err) < 0)
            return err->code;
    return race_scheduler(trial, scheduler, &rows[VERIFY_SCHEDULER], err);
}
