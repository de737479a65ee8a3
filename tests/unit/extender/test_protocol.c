#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "extender/serving/metrics/metrics.h"
#include "extender/serving/protocol/protocol.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena, 1 << 20);
}

static void teardown(void)
{
    arena_dispose(&arena);
}

TestSuite(protocol, .init = setup, .fini = teardown);

#define POD "\"Pod\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\"}}"

static const struct {
    const char *name, *body, *message; /* message: NULL when the body is fine */
} filter_bodies[] = {
    {"names", "{" POD ",\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\"]}", NULL},
    {"nodes", "{" POD ",\"Nodes\":{\"items\":[]},\"NodeNames\":null}", NULL},
    {"lower case keys", "{\"pod\":{\"metadata\":{\"name\":\"a\"}},\"nodenames\":[]}", NULL},
    {"nodes first", "{\"NodeNames\":[\"n1\"]," POD "}", NULL},
    {"an unknown key", "{" POD ",\"More\":[{}],\"NodeNames\":[]}", NULL},
    {"Pod missing", "{\"NodeNames\":[]}", "body: Pod is missing"},
    {"Pod null", "{\"Pod\":null,\"NodeNames\":[]}", "Pod: expected an object"},
    {"Pod twice", "{" POD "," POD ",\"NodeNames\":[]}", "Pod: this key appears twice"},
    {"Pod twice in another case", "{" POD ",\"pod\":{},\"NodeNames\":[]}",
     "Pod: this key appears twice"},
    {"no nodes", "{" POD "}", "body: NodeNames and Nodes are both missing"},
    {"both forms", "{" POD ",\"NodeNames\":[],\"Nodes\":{}}",
     "body: NodeNames and Nodes are both there: send one"},
    {"both forms, names first", "{" POD ",\"NodeNames\":[\"n\"],\"Nodes\":{\"items\":[]}}",
     "body: NodeNames and Nodes are both there: send one"},
    {"both forms, names first, and both full",
     "{" POD ",\"NodeNames\":[\"n\"],\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n\"}}]}}",
     "body: NodeNames and Nodes are both there: send one"},
    {"both forms, nodes first",
     "{" POD
     ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n\"}}]},\"NodeNames\":[\"n\",\"m\"]}",
     "body: NodeNames and Nodes are both there: send one"},
    {"names that are no strings", "{" POD ",\"NodeNames\":[1]}", "NodeNames: expected a string"},
    {"nodes that are no object", "{" POD ",\"Nodes\":[]}", "Nodes: expected an object"},
    {"an array", "[]", "body:1:1: expected an object"},
    {"null", "null", "expected an object"},
    {"nothing", "", "body:1:1: unexpected end of the text"},
    {"more behind it", "{" POD ",\"NodeNames\":[]}}", "expected the end of the text"},
    {"volumes of a wrong type",
     "{\"Pod\":{\"metadata\":{\"name\":\"a\"},\"spec\":{\"volumes\":{}}},\"NodeNames\":[]}",
     "Pod.spec.volumes: expected an array"},
};

Test(protocol, filter_bodies_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof filter_bodies / sizeof *filter_bodies; i++) {
        struct filter_request request;
        struct error err = {0};
        int rc = protocol_read_filter(&request, slice_of(filter_bodies[i].body), &arena, &err);
        if (filter_bodies[i].message == NULL) {
            cr_expect_eq(rc, 0, "%s: %s", filter_bodies[i].name, err.message);
            continue;
        }
        cr_expect_eq(rc, ERROR_INVALID, "%s", filter_bodies[i].name);
        cr_expect_not_null(strstr(err.message, filter_bodies[i].message), "%s: got %s",
                           filter_bodies[i].name, err.message);
    }
}

static json_t *answer(const struct buf *out)
{
    json_t *value = json_loadb(out->bytes, out->len, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(value, "%.*s", (int)out->len, out->bytes);
    return value;
}

static const char *text_at(const json_t *value, const char *key, const char *inner)
{
    return json_string_value(json_object_get(json_object_get(value, key), inner));
}

static void write_rejected(struct buf *out, const char *body, enum verdict_code code)
{
    const struct slice reason = SLICE("claim a/b is \"in use\"");
    struct filter_request request;
    struct error err = {0};

    buf_init(out, 1 << 20);
    cr_assert_eq(protocol_read_filter(&request, slice_of(body), &arena, &err), 0);
    cr_assert_eq(protocol_write_rejected(out, &request, code, reason, &arena, &err), 0);
}

Test(protocol, a_rejection_names_every_node_in_the_form_that_was_asked)
{
    struct buf out;

    write_rejected(&out, "{" POD ",\"NodeNames\":[ \"n1\", \"n\\u0032\" ]}", CODE_UNSCHEDULABLE);
    json_t *value = answer(&out);
    cr_expect_str_eq(text_at(value, "FailedNodes", "n1"), "claim a/b is \"in use\"");
    cr_expect_str_eq(text_at(value, "FailedNodes", "n2"), "claim a/b is \"in use\"");
    cr_expect_eq(json_array_size(json_object_get(value, "NodeNames")), 0);
    cr_expect(json_is_null(json_object_get(value, "Nodes")));
    json_decref(value);
    buf_dispose(&out);

    write_rejected(&out,
                   "{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n1\"}},"
                   "{\"metadata\":{\"name\":\"n2\"}}]}}",
                   CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    value = answer(&out);
    cr_expect_str_eq(text_at(value, "FailedAndUnresolvableNodes", "n2"), "claim a/b is \"in use\"");
    cr_expect(json_is_null(json_object_get(value, "NodeNames")));
    cr_expect_eq(json_object_size(json_object_get(value, "FailedNodes")), 0);
    json_decref(value);
    buf_dispose(&out);

    write_rejected(&out, "{" POD ",\"NodeNames\":[]}", CODE_UNSCHEDULABLE);
    value = answer(&out);
    cr_expect_eq(json_object_size(json_object_get(value, "FailedNodes")), 0);
    json_decref(value);
    buf_dispose(&out);
}

/* Passes the body; the memory has so much room behind it. */
static void check_passed(const char *text, size_t room, const char *want)
{
    struct filter_request request;
    struct error err = {0};
    struct buf body, out;
    size_t length = strlen(text);

    buf_init(&body, 1 << 20);
    buf_init(&out, 1 << 20);
    body.bytes = malloc(length + room); /* exact, so that ASan sees a write behind it */
    cr_assert_not_null(body.bytes);
    memcpy(body.bytes, text, length);
    body.len = length;
    body.capacity = length + room;
    cr_assert_eq(protocol_read_filter(&request, buf_slice(&body), &arena, &err), 0, "%s",
                 err.message);
    struct slice got = protocol_pass(&body, &request, &out);
    cr_expect(slice_equal(got, slice_of(want)), "room %zu: %.*s", room, SLICE_ARG(got));
    buf_dispose(&body);
    buf_dispose(&out);
}

Test(protocol, the_nodes_that_pass_stand_in_the_answer_as_they_came)
{
    static const size_t sizes[] = {0, 1, 40, 59, 60, 61, 62, 63, 64, 65, 1000};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_passed("{" POD ",\"NodeNames\":[\"n1\" , \"n2\"]}", sizes[i],
                     "{\"Nodes\":null,\"NodeNames\":[\"n1\" , \"n2\"],\"FailedNodes\":{},"
                     "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        check_passed("{\"NodeNames\":[\"n1\"]," POD "}", sizes[i],
                     "{\"Nodes\":null,\"NodeNames\":[\"n1\"],\"FailedNodes\":{},"
                     "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        check_passed("{" POD ",\"Nodes\":{\"items\":[]}}", sizes[i],
                     "{\"NodeNames\":null,\"Nodes\":{\"items\":[]},\"FailedNodes\":{},"
                     "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
    }
}

Test(protocol, preempt_takes_both_forms_of_victims)
{
    static const char *const bodies[] = {
        "{" POD ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"n\\u0031\":{\"Pods\":"
        "[{\"UID\":\"v1\"},{\"UID\":\"v2\"}],\"NumPDBViolations\":3}}}",
        "{" POD
        ",\"NodeNameToVictims\":{\"n1\":{\"Pods\":[{\"metadata\":{\"uid\":\"v1\"},\"spec\":{}},"
        "{\"metadata\":{\"uid\":\"v2\"}}],\"NumPDBViolations\":3}},\"NodeNameToMetaVictims\":null}",
    };
    for (size_t i = 0; i < 2; i++) {
        struct preempt_request request;
        struct error err = {0};
        struct buf out;
        cr_assert_eq(protocol_read_preempt(&request, slice_of(bodies[i]), &arena, &err), 0, "%s",
                     err.message);
        cr_assert_eq(request.candidate_count, 1);
        request.candidates[0].keeps_node = true;
        buf_init(&out, 4096);
        protocol_write_preempt(&out, &request);
        cr_expect(slice_equal(
            buf_slice(&out), SLICE("{\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"v1\"},"
                                   "{\"UID\":\"v2\"}],\"NumPDBViolations\":3}}}")));
        buf_dispose(&out);
    }
}

Test(protocol, a_number_of_violations_that_none_can_be_is_refused)
{
    static const char *const numbers[] = {"9223372036854775807", "2147483648", "-1"};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct preempt_request request;
        struct error err = {0};
        char body[512];
        (void)snprintf(body, sizeof body,
                       "{" POD ",\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[],"
                       "\"NumPDBViolations\":%s}}}",
                       numbers[i]);
        cr_expect_eq(protocol_read_preempt(&request, slice_of(body), &arena, &err), ERROR_INVALID);
        cr_expect_not_null(strstr(err.message, "NumPDBViolations: expected 0 to 2147483647"), "%s",
                           err.message);
    }
}

Test(protocol, a_candidate_without_victims_is_left_out)
{
    struct preempt_request request;
    struct error err = {0};
    struct buf out;

    cr_assert_eq(
        protocol_read_preempt(&request,
                              SLICE("{" POD ",\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":null}}}"),
                              &arena, &err),
        0);
    request.candidates[0].keeps_node = true;
    buf_init(&out, 4096);
    protocol_write_preempt(&out, &request);
    cr_expect(slice_equal(buf_slice(&out), SLICE("{\"NodeNameToMetaVictims\":{}}")));
    buf_dispose(&out);
}

/* Bodies with a name, or a UID, in place of %s. */
static const struct {
    enum verb verb;
    size_t max;
    const char *body;
} named_bodies[] = {
    {VERB_FILTER, 36, "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"uid\":\"%s\"}},\"NodeNames\":[]}"},
    {VERB_FILTER, 253, "{" POD ",\"NodeNames\":[\"%s\"]}"},
    {VERB_FILTER, 253, "{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"%s\"}}]}}"},
    {VERB_PREEMPT, 253, "{" POD ",\"NodeNameToMetaVictims\":{\"%s\":{\"Pods\":[]}}}"},
    {VERB_PREEMPT, 36, "{" POD ",\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":\"%s\"}]}}}"},
    {VERB_PREEMPT, 36, "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"uid\":\"%s\"}}}"},
    {VERB_BIND, 253, "{\"PodName\":\"%s\",\"PodNamespace\":\"n\",\"PodUID\":\"u\",\"Node\":\"n\"}"},
    {VERB_BIND, 253, "{\"PodName\":\"n\",\"PodNamespace\":\"%s\",\"PodUID\":\"u\",\"Node\":\"n\"}"},
    {VERB_BIND, 36, "{\"PodName\":\"n\",\"PodNamespace\":\"n\",\"PodUID\":\"%s\",\"Node\":\"n\"}"},
    {VERB_BIND, 253, "{\"PodName\":\"n\",\"PodNamespace\":\"n\",\"PodUID\":\"u\",\"Node\":\"%s\"}"},
};

static int read_as(enum verb verb, struct slice body, struct error *err)
{
    union {
        struct filter_request filter;
        struct pod_object pod;
        struct preempt_request preempt;
        struct bind_request bind;
    } out;

    switch (verb) {
    case VERB_FILTER: return protocol_read_filter(&out.filter, body, &arena, err);
    case VERB_PREFILTER: return protocol_read_pod(&out.pod, body, &arena, err);
    case VERB_PREEMPT: return protocol_read_preempt(&out.preempt, body, &arena, err);
    default: return protocol_read_bind(&out.bind, body, &arena, err);
    }
}

Test(protocol, a_node_has_a_name_and_is_a_candidate_once)
{
    static const struct {
        enum verb verb;
        const char *body, *problem;
    } rows[] = {
        {VERB_FILTER, "{" POD ",\"NodeNames\":[\"\"]}", "an empty name"},
        {VERB_FILTER, "{" POD ",\"NodeNames\":[\"n\", \"\"]}", "an empty name"},
        {VERB_FILTER, "{" POD ",\"Nodes\":{\"items\":[null]}}", "a node without a name"},
        {VERB_FILTER, "{" POD ",\"Nodes\":{\"items\":[{}]}}", "a node without a name"},
        {VERB_FILTER, "{" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"\"}}]}}",
         "a node without a name"},
        {VERB_PREEMPT, "{" POD ",\"NodeNameToMetaVictims\":{\"\":{\"Pods\":[]}}}",
         "a node without a name"},
        {VERB_PREEMPT, "{" POD ",\"NodeNameToMetaVictims\":{\"m\":{},\"n\":{},\"m\":{}}}",
         "node \"m\" is named twice"},
        {VERB_PREEMPT,
         "{" POD ",\"NodeNameToVictims\":{\"n\":{}},\"NodeNameToMetaVictims\":{\"n\":{}}}",
         "node \"n\" is named twice"},
        {VERB_PREEMPT,
         "{" POD ",\"NodeNameToVictims\":{\"m\":{}},\"NodeNameToMetaVictims\":{\"n\":{}}}", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        int want = rows[i].problem == NULL ? 0 : ERROR_INVALID;
        cr_expect_eq(read_as(rows[i].verb, slice_of(rows[i].body), &err), want, "%s", rows[i].body);
        cr_expect(want == 0 || strstr(err.message, rows[i].problem) != NULL, "%s: %s", rows[i].body,
                  err.message);
    }
}

/* The body with so many letters in place of %s. */
static void expand(struct buf *out, const char *body, size_t letters)
{
    const char *place = strstr(body, "%s");

    buf_init(out, 4096);
    buf_put(out, (struct slice){body, (size_t)(place - body)});
    for (size_t i = 0; i < letters; i++)
        buf_put(out, SLICE("n"));
    buf_put(out, slice_of(place + 2));
}

Test(protocol, names_and_uids_have_at_most_as_many_bytes_as_the_api_server_takes)
{
    for (size_t i = 0; i < sizeof named_bodies / sizeof *named_bodies; i++) {
        for (size_t more = 0; more < 2; more++) {
            struct error err = {0};
            struct buf body;
            expand(&body, named_bodies[i].body, named_bodies[i].max + more);
            int rc = read_as(named_bodies[i].verb, buf_slice(&body), &err);
            cr_expect_eq(rc, more == 0 ? 0 : ERROR_INVALID, "%s: %s", named_bodies[i].body,
                         err.message);
            buf_dispose(&body);
        }
    }
}

Test(protocol, bind_needs_all_of_its_keys)
{
    static const char *const keys[] = {"PodName", "PodNamespace", "PodUID", "Node"};

    for (size_t missing = 0; missing < 4; missing++) {
        struct bind_request request;
        struct error err = {0};
        struct buf body;
        buf_init(&body, 4096);
        buf_put(&body, SLICE("{\"x\":1"));
        for (size_t i = 0; i < 4; i++)
            if (i != missing)
                buf_printf(&body, ",\"%s\":\"v\"", keys[i]);
        buf_put(&body, SLICE("}"));
        cr_expect_eq(protocol_read_bind(&request, buf_slice(&body), &arena, &err), ERROR_INVALID);
        cr_expect_not_null(strstr(err.message, keys[missing]), "%s", err.message);
        buf_dispose(&body);
    }
}
