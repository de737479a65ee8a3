/* What tests/commands/who cannot show, because a snapshot has no time: how much grace is left. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "config/base/text.h"
#include "config/config.h"
#include "extender/commands/who/who.h"

#define DELETED "2026-11-22T10:00:30Z"

static const char cluster[] =
    "kind: PersistentVolumeClaim\nmetadata: {name: data, namespace: n}\nspec: {accessModes: "
    "[ReadWriteOncePod]}\n---\n"
    "kind: Pod\nmetadata: {name: db-0, namespace: n, deletionTimestamp: \"" DELETED
    "\", deletionGracePeriodSeconds: 30}\n"
    "spec: {nodeName: node-1, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}\n";

static struct error err;
static struct config *config;
static const struct operand operands[] = {{{"n", 1}, {"data", 4}, KIND_CLAIM},
                                          {{"n", 1}, {"none", 4}, KIND_CLAIM}};
static struct who_question question = {.operands = operands, .count = 2};

/* The answer as JSON. */
static json_t *ask(const struct inquiry *inquiry, bool *found)
{
    struct who_answer answer;
    struct fields out;
    struct buf text;

    cr_assert(who_answer(&answer, inquiry, &question, found));
    buf_init(&text, 1 << 20);
    fields_begin_compact(&out, &text);
    fields_open(&out, NULL, '{');
    who_put(&out, &answer);
    cr_assert(fields_end(&out));
    json_t *value = json_loadb(text.bytes, text.len, 0, NULL);
    buf_dispose(&text);
    who_dispose(&answer);
    return value;
}

static void read_cluster(struct inquiry *inquiry)
{
    char path[] = "/tmp/claimguard-test-XXXXXX";
    const struct inquiry_origin origin = {.snapshot = path};
    const struct inquiry_wish wish = who_wish(&question);
    FILE *file = fdopen(mkstemp(path), "w");

    cr_assert_not_null(file);
    cr_assert_eq(config_load(&config, NULL, &err), 0);
    question.config = config;
    (void)fputs(cluster, file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(inquiry_open(inquiry, &origin, &err), 0);
    cr_assert_eq(inquiry_read(inquiry, &wish, &err), 0, "%s", err.message);
    (void)unlink(path);
}

Test(who, says_how_much_grace_is_left_at_the_time_of_the_answer)
{
    static const struct {
        int64_t later_ms;
        const char *advice;
        json_int_t left;
    } rows[] = {
        {-25000, "wait: pod n/db-0 is terminating, with 25 s of grace left", 25},
        {0, "wait: pod n/db-0 is terminating, with 0 s of grace left", 0},
        {5000,
         "pod n/db-0 is terminating, and its grace ended 5 s ago: the kubelet's log on node node-1 "
         "says why it cannot end it, or unmount its volumes (a deletion by force leaves them "
         "mounted)",
         -5},
    };
    struct inquiry inquiry;
    bool found[2];

    read_cluster(&inquiry);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        inquiry.now_ms = time_parse(SLICE(DELETED)) + rows[i].later_ms;
        json_t *answer = ask(&inquiry, found);
        const json_t *claim = json_array_get(json_object_get(answer, "claims"), 0);
        const json_t *holder = json_array_get(json_object_get(claim, "heldBy"), 0);
        const json_t *advice = json_array_get(json_object_get(claim, "freedBy"), 0);
        cr_expect_str_eq(json_string_value(json_object_get(advice, "text")), rows[i].advice);
        cr_expect_eq(json_integer_value(json_object_get(holder, "graceSecondsLeft")), rows[i].left);
        json_decref(answer);
    }
    inquiry_close(&inquiry);
}

Test(who, says_which_claims_there_are)
{
    struct inquiry inquiry;
    bool found[2] = {false, false};

    read_cluster(&inquiry);
    json_decref(ask(&inquiry, found));
    cr_expect(found[0]);
    cr_expect_not(found[1]);
    inquiry_close(&inquiry);
}

static void expect_namespace(const struct who_question *asked, const char *ns)
{
    cr_expect(slice_equal(who_wish(asked).ns, slice_of(ns)), "%s", ns);
}

/* Of a live cluster, only the namespace of the names is listed, if there is one. */
Test(who, reads_no_more_namespaces_than_it_needs)
{
    static const struct operand both[] = {{{"n", 1}, {"data", 4}, KIND_CLAIM},
                                          {{"m", 1}, {"data", 4}, KIND_CLAIM}};
    static const struct operand any[] = {{{"", 0}, {"data", 4}, KIND_CLAIM}};

    expect_namespace(&question, "n");
    expect_namespace(&(struct who_question){.operands = both, .count = 2}, "");
    expect_namespace(&(struct who_question){.operands = any, .count = 1}, "");
    expect_namespace(&(struct who_question){.is_all = true}, "");
    expect_namespace(&(struct who_question){.is_all = true, .ns = {"m", 1}}, "m");
}
