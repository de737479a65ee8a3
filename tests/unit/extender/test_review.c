/* The bodies of admission webhooks: what is read, what is refused and why, and what is answered. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "extender/serving/admission/review.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena, 4 << 20);
}

static void teardown(void)
{
    arena_dispose(&arena);
}

TestSuite(review, .init = setup, .fini = teardown);

#define HEAD           "\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\""
#define REQUEST(more_) "{" HEAD ",\"request\":{\"uid\":\"u\",\"namespace\":\"ns\"" more_ "}}"
#define PODS(sub_) \
    ",\"operation\":\"CREATE\",\"resource\":{\"resource\":\"pods\"}," \
    "\"subResource\":\"" sub_ "\""

static const struct {
    const char *name, *body, *message; /* message: NULL when the body is fine */
} bodies[] = {
    {"the least", REQUEST(""), NULL},
    {"unknown keys", REQUEST(",\"options\":{\"a\":[1]},\"oldObject\":null"), NULL},
    {"an object of any type", REQUEST(",\"object\":[1,2]"), NULL},
    {"nothing", "", "body:1:1: unexpected end of the text"},
    {"null", "null", "expected an object"},
    {"an array", "[]", "body:1:1: expected an object"},
    {"more behind it", REQUEST("") "{}", "expected the end of the text"},
    {"another version",
     "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\"}",
     "body: expected an AdmissionReview of admission.k8s.io/v1"},
    {"another kind", "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"Pod\"}",
     "body: expected an AdmissionReview of admission.k8s.io/v1"},
    {"no request", "{" HEAD "}", "body: request.uid is missing"},
    {"request null", "{" HEAD ",\"request\":null}", "body: request.uid is missing"},
    {"request a string", "{" HEAD ",\"request\":\"x\"}", "request: expected an object"},
    {"keys in another case", "{" HEAD ",\"Request\":{\"uid\":\"u\",\"namespace\":\"ns\"}}",
     "body: request.uid is missing"},
    {"no uid", "{" HEAD ",\"request\":{\"namespace\":\"ns\"}}", "body: request.uid is missing"},
    {"no namespace", "{" HEAD ",\"request\":{\"uid\":\"u\"}}",
     "body: request.namespace is missing"},
    {"a uid twice", REQUEST(",\"uid\":\"v\""), "request.uid: this key appears twice"},
    {"request twice", "{" HEAD ",\"request\":{},\"request\":{}}",
     "request: this key appears twice"},
    {"dryRun a string", REQUEST(",\"dryRun\":\"true\""), "request.dryRun: expected true or false"},
    {"a user without an object", REQUEST(",\"userInfo\":7"),
     "request.userInfo: expected an object"},
    {"an object that is cut", "{" HEAD ",\"request\":{\"object\":{\"a\":", "unexpected end"},
    {"a bad object", REQUEST(",\"object\":{\"a\":01}"), "body:1:"},
};

Test(review, bodies_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct review review;
        struct error err = {0};
        int rc = review_read(&review, slice_of(bodies[i].body), &arena, &err);
        if (bodies[i].message == NULL) {
            cr_expect_eq(rc, 0, "%s: %s", bodies[i].name, err.message);
            continue;
        }
        cr_expect_eq(rc, ERROR_INVALID, "%s", bodies[i].name);
        cr_expect_not_null(strstr(err.message, bodies[i].message), "%s: got %s", bodies[i].name,
                           err.message);
    }
}

/* A body whose request has a value of that many bytes. */
static struct slice long_body(const char *key, size_t bytes)
{
    char *value = arena_alloc(&arena, bytes + 1);

    memset(value, 'a', bytes);
    value[bytes] = '\0';
    return arena_printf(&arena, "{" HEAD ",\"request\":{%s\"%s\":\"%s\"}}",
                        strcmp(key, "uid") == 0         ? "\"namespace\":\"ns\","
                        : strcmp(key, "namespace") == 0 ? "\"uid\":\"u\","
                                                        : "\"uid\":\"u\",\"namespace\":\"ns\",",
                        key, value);
}

Test(review, names_that_no_api_server_takes_are_refused)
{
    static const struct {
        const char *key;
        size_t max;
    } rows[] = {{"uid", REVIEW_UID_BYTES_MAX}, {"namespace", 253}, {"name", 253}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct review review;
        struct error err = {0};
        cr_expect_eq(review_read(&review, long_body(rows[i].key, rows[i].max), &arena, &err), 0,
                     "%s: %s", rows[i].key, err.message);
        cr_expect_eq(review_read(&review, long_body(rows[i].key, rows[i].max + 1), &arena, &err),
                     ERROR_INVALID, "%s", rows[i].key);
    }
}

Test(review, a_user_with_a_long_name_is_no_reason_to_refuse_a_review)
{
    char *user = arena_alloc(&arena, 5001);
    struct review review;
    struct error err = {0};

    memset(user, 'u', 5000);
    struct slice body = arena_printf(&arena, REQUEST(",\"userInfo\":{\"username\":\"%s\"}"), user);
    cr_expect_eq(review_read(&review, body, &arena, &err), 0, "%s", err.message);
    cr_expect_eq(review.user_name.len, USER_NAME_BYTES_MAX);
}

/* As deep as Go's decoder goes, and deeper than any stack of this program. */
Test(review, depth_costs_no_stack)
{
    enum { LEVELS = 9000, MORE = 200000 };
    struct review review;
    struct error err = {0};
    struct buf body;

    buf_init(&body, 4 << 20);
    buf_put(&body, SLICE("{" HEAD ",\"request\":{\"uid\":\"u\",\"namespace\":\"ns\",\"object\":"));
    for (int i = 0; i < LEVELS; i++)
        buf_put(&body, SLICE("["));
    for (int i = 0; i < LEVELS; i++)
        buf_put(&body, SLICE("]"));
    buf_put(&body, SLICE("}}"));
    cr_expect_eq(review_read(&review, buf_slice(&body), &arena, &err), 0, "%s", err.message);
    buf_reset(&body, 0);
    buf_put(&body, SLICE("{" HEAD ",\"request\":{\"object\":"));
    for (int i = 0; i < MORE; i++)
        buf_put(&body, SLICE("{\"a\":"));
    cr_expect_eq(review_read(&review, buf_slice(&body), &arena, &err), ERROR_INVALID);
    buf_dispose(&body);
}

Test(review, of_what_it_is)
{
    static const struct {
        const char *body;
        bool is_binding, is_pod;
    } rows[] = {
        {REQUEST(PODS("binding")), true, false},
        {REQUEST(PODS("")), false, true},
        {REQUEST(PODS("status")), false, false},
        {REQUEST(",\"operation\":\"CREATE\",\"resource\":{\"resource\":\"bindings\"}"), true,
         false},
        {REQUEST(",\"operation\":\"UPDATE\",\"resource\":{\"resource\":\"bindings\"}"), false,
         false},
        {REQUEST(",\"operation\":\"UPDATE\",\"resource\":{\"resource\":\"pods\"}"), false, false},
        {REQUEST(""), false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct review review;
        struct error err = {0};
        cr_assert_eq(review_read(&review, slice_of(rows[i].body), &arena, &err), 0, "%s",
                     err.message);
        cr_expect_eq(review_is_of_binding(&review), rows[i].is_binding, "%s", rows[i].body);
        cr_expect_eq(review_is_of_pod(&review), rows[i].is_pod, "%s", rows[i].body);
    }
}

/* ---- Bindings ---- */

#define BINDING(name_, object_) \
    REQUEST(",\"name\":\"" name_ "\"" PODS("binding") ",\"object\":" object_)

static const struct {
    const char *name, *body, *message;
} bindings[] = {
    {"a Binding",
     BINDING("p", "{\"metadata\":{\"name\":\"p\",\"uid\":\"x\"},\"target\":{\"kind\":\"Node\","
                  "\"name\":\"n\"}}"),
     NULL},
    {"without a name in the path, UID and kind",
     BINDING("", "{\"metadata\":{\"name\":\"p\"},\"target\":{\"name\":\"n\"}}"), NULL},
    {"no object", REQUEST(PODS("binding")), "body: request.object is missing"},
    {"object null", BINDING("p", "null"), "body: request.object is missing"},
    {"object an array", BINDING("p", "[]"), "body:1:"},
    {"no name", BINDING("p", "{\"target\":{\"name\":\"n\"}}"),
     "body: request.object.metadata.name is missing"},
    {"no target", BINDING("p", "{\"metadata\":{\"name\":\"p\"}}"),
     "body: request.object.target.name is missing"},
    {"another name", BINDING("p", "{\"metadata\":{\"name\":\"q\"},\"target\":{\"name\":\"n\"}}"),
     "body: request.name is not that of request.object.metadata"},
    {"to no node",
     BINDING("p", "{\"metadata\":{\"name\":\"p\"},\"target\":{\"kind\":\"Pod\",\"name\":\"n\"}}"),
     "body: request.object.target.kind is not Node"},
    {"a UID of 37 bytes",
     BINDING("p",
             "{\"metadata\":{\"name\":\"p\",\"uid\":\"0123456789012345678901234567890123456\"},"
             "\"target\":{\"name\":\"n\"}}"),
     "body: request.object.metadata.uid has over 36 bytes"},
    {"a name of a wrong type", BINDING("p", "{\"metadata\":{\"name\":[]},\"target\":{}}"),
     "metadata.name: expected a string"},
};

Test(review, bindings_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) {
        struct slice body = slice_of(bindings[i].body);
        struct bind_request request;
        struct review review;
        struct error err = {0};
        cr_assert_eq(review_read(&review, body, &arena, &err), 0, "%s: %s", bindings[i].name,
                     err.message);
        struct slice annotation;
        int rc = review_read_binding(&request, &annotation, &review, body, &arena, &err);
        if (bindings[i].message == NULL) {
            cr_expect_eq(rc, 0, "%s: %s", bindings[i].name, err.message);
            cr_expect(slice_equal(request.pod.ns, SLICE("ns")) &&
                      slice_equal(request.pod.name, SLICE("p")) &&
                      slice_equal(request.node, SLICE("n")));
            continue;
        }
        cr_expect_eq(rc, ERROR_INVALID, "%s", bindings[i].name);
        cr_expect_not_null(strstr(err.message, bindings[i].message), "%s: got %s", bindings[i].name,
                           err.message);
    }
}

/* ---- pods ---- */

#define POD(name_, object_)  REQUEST(",\"name\":\"" name_ "\"" PODS("") ",\"object\":" object_)
#define META(name_, uid_)    "\"metadata\":{\"name\":\"" name_ "\",\"uid\":\"" uid_ "\"}"
#define ON_NODE(name_, uid_) "{" META(name_, uid_) ",\"spec\":{\"nodeName\":\"n\"}}"
#define NO_SUCH_CHARACTER    "body: a character that no namespace, name or UID of a pod has"
#define UID_IS_MISSING       "body: request.object.metadata.uid is missing"

static const struct {
    const char *name, *body, *message;
} pods[] = {
    {"a pod with its node", POD("p", ON_NODE("p", "0-1")), NULL},
    {"each kind of character", POD("a-z.0-9", ON_NODE("a-z.0-9", "0-9a-z")), NULL},
    {"without a name in the request", POD("", ON_NODE("p", "0-1")), NULL},
    {"without a node and a UID", POD("p", "{\"metadata\":{\"name\":\"p\"}}"), NULL},
    {"a name that is not generated yet", POD("", "{\"metadata\":{\"generateName\":\"p-\"}}"),
     "a Pod without metadata.name"},
    {"no object", REQUEST(PODS("")), "body: request.object is missing"},
    {"object an array", POD("p", "[]"), "body:1:"},
    {"another name", POD("q", ON_NODE("p", "0-1")),
     "body: request.name is not that of request.object.metadata"},
    {"a node and no UID", POD("p", ON_NODE("p", "")), UID_IS_MISSING},
    {"a UID that ends a string", POD("p", ON_NODE("p", "\\\",\\\"")), NO_SUCH_CHARACTER},
    {"a UID that ends a name", POD("p", ON_NODE("p", "0/q")), NO_SUCH_CHARACTER},
    {"a name that ends a string", POD("p\\\"", ON_NODE("p\\\"", "0")), NO_SUCH_CHARACTER},
    {"a control character", POD("p", ON_NODE("p", "\\u0000")), NO_SUCH_CHARACTER},
    {"a namespace that ends a path",
     "{" HEAD ",\"request\":{\"uid\":\"u\",\"namespace\":\"a/b\"" PODS("") ",\"object\":" ON_NODE(
         "p", "0") "}}",
     NO_SUCH_CHARACTER},
};

Test(review, pods_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++) {
        struct slice body = slice_of(pods[i].body);
        struct pod_object pod;
        struct review review;
        struct error err = {0};
        cr_assert_eq(review_read(&review, body, &arena, &err), 0, "%s: %s", pods[i].name,
                     err.message);
        int rc = review_read_pod(&pod, &review, body, &arena, &err);
        if (pods[i].message == NULL) {
            cr_expect_eq(rc, 0, "%s: %s", pods[i].name, err.message);
            cr_expect(slice_equal(pod.meta.ns, SLICE("ns")), "%s", pods[i].name);
            continue;
        }
        cr_expect_eq(rc, ERROR_INVALID, "%s", pods[i].name);
        cr_expect_not_null(strstr(err.message, pods[i].message), "%s: got %s", pods[i].name,
                           err.message);
    }
}

Test(review, a_pod_over_a_limit_is_no_malformed_one)
{
    struct slice body = slice_of(POD("p", ON_NODE("p", "0123456789012345678901234567890123456")));
    struct pod_object pod;
    struct review review;
    struct error err = {0};

    cr_assert_eq(review_read(&review, body, &arena, &err), 0, "%s", err.message);
    cr_expect_eq(review_read_pod(&pod, &review, body, &arena, &err), ERROR_TOO_BIG);
    cr_expect_not_null(strstr(err.message, "Pod.metadata.uid"), "%s", err.message);
    cr_expect(slice_equal(pod.node, SLICE("n")), "what was read is set");
}

/* The place in the whole body, and not in the object. */
Test(review, an_error_in_the_object_names_its_place)
{
    static const char body[] =
        "{" HEAD
        ",\"request\":{\"uid\":\"u\",\"namespace\":\"ns\",\n\"object\":\n  {\"metadata\":7}}}";
    struct bind_request request;
    struct review review;
    struct error err = {0};

    cr_assert_eq(review_read(&review, slice_of(body), &arena, &err), 0, "%s", err.message);
    struct slice annotation;
    cr_expect_eq(review_read_binding(&request, &annotation, &review, slice_of(body), &arena, &err),
                 ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, "body:3:15: "), "%s", err.message);
}

/* ---- answers ---- */

static json_t *written(const struct review_answer *answer)
{
    const struct review review = {.uid = SLICE("u\"1")};
    struct buf out;

    buf_init(&out, 1 << 16);
    review_write(&out, &review, answer);
    json_t *value = json_loadb(out.bytes, out.len, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(value, "%.*s", (int)out.len, out.bytes);
    buf_dispose(&out);
    return value;
}

Test(review, an_answer_that_allows)
{
    const struct slice warnings[] = {SLICE("one"), SLICE("\"two\"")};
    json_t *answer = written(
        &(struct review_answer){.is_allowed = true, .warnings = warnings, .warning_count = 2});
    json_t *expected = json_pack("{s:s,s:s,s:{s:s,s:b,s:[s,s]}}", "apiVersion",
                                 "admission.k8s.io/v1", "kind", "AdmissionReview", "response",
                                 "uid", "u\"1", "allowed", 1, "warnings", "one", "\"two\"");

    cr_expect(json_equal(answer, expected));
    json_decref(answer);
    json_decref(expected);
}

Test(review, an_answer_that_denies)
{
    json_t *answer = written(
        &(struct review_answer){.code = 409, .reason = "Conflict", .message = SLICE("no\n")});
    json_t *expected =
        json_pack("{s:s,s:s,s:{s:s,s:b,s:{s:s,s:i,s:s,s:s}}}", "apiVersion", "admission.k8s.io/v1",
                  "kind", "AdmissionReview", "response", "uid", "u\"1", "allowed", 0, "status",
                  "status", "Failure", "code", 409, "reason", "Conflict", "message", "no\n");

    cr_expect(json_equal(answer, expected));
    json_decref(answer);
    json_decref(expected);
}
