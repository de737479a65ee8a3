/* Objects of claimguard's own kinds in files: what is wrong with them, and who skips them. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "cache/cluster/reservation.h"
#include "cache/snapshot/source.h"
#include "config/base/clock.h"
#include "support/load.h"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(own_object, .init = setup, .fini = teardown);

/* ---- reading ---- */

static int read_text(const char *text, struct own_object *out, struct arena *arena,
                     struct error *err)
{
    struct pull json;

    pull_init(&json, slice_of(text));
    return own_object_read(&json, OWN_RESERVATION, arena, out)
               ? 0
               : pull_fail(&json, "own", (struct place){1, 1}, err);
}

static const struct {
    const char *text, *problem;
} bad[] = {
    {"{}", "an object without metadata.name"},
    {"7", "expected an object"},
    {"{\"metadata\":{\"name\":\"a\"}}", "a Reservation without spec.podUID"},
    {"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"podUID\":\"u\",\"priority\":2147483648}}",
     "spec.priority does not fit 32 bits"},
    {"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"podUID\":\"u\",\"expiresInMilliseconds\":-1}}",
     "spec.expiresInMilliseconds: expected 0 to 2147483647"},
    {"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"podUID\":\"u\",\"claims\":{}}}",
     "expected an array"},
    {"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"podUID\":\"u\",\"claims\":[7]}}",
     "expected a string"},
    {"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"podUID\":\"u\",\"binding\":\"yes\"}}",
     "expected true or false"},
};

Test(own_object, bad_ones_are_errors)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        struct own_object object;
        struct arena arena;
        arena_init(&arena, 1 << 20);
        cr_expect_lt(read_text(bad[i].text, &object, &arena, &err), 0, "%s", bad[i].text);
        cr_expect_not_null(strstr(err.message, bad[i].problem), "%s: %s", bad[i].text, err.message);
        arena_dispose(&arena);
    }
}

Test(own_object, no_reservation_has_over_512_claims)
{
    struct error err = {0};
    struct own_object object;
    struct arena arena;
    struct buf text;

    for (int count = POD_CLAIMS_MAX; count <= POD_CLAIMS_MAX + 1; count++) {
        arena_init(&arena, 1 << 20);
        buf_init(&text, 1 << 20);
        buf_printf(&text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"podUID\":\"u\","
                          "\"sharedClaims\":[\"x\"],\"claims\":[\"0\"");
        for (int i = 2; i < count; i++)
            buf_printf(&text, ",\"%d\"", i);
        buf_put(&text, SLICE("]}}"));
        int rc = read_text(buf_text(&text), &object, &arena, &err);
        cr_expect_eq(rc == 0, count == POD_CLAIMS_MAX, "%d: %s", count, err.message);
        buf_dispose(&text);
        arena_dispose(&arena);
    }
}

Test(own_object, kinds_of_others_are_not_own)
{
    cr_expect_eq(own_kind_of(SLICE("claimguard.io/v9"), SLICE("Reservation")), OWN_RESERVATION);
    cr_expect_eq(own_kind_of(SLICE("claimguard.io/v1"), SLICE("Other")), OWN_NONE);
    cr_expect_eq(own_kind_of(SLICE("claimguard.io"), SLICE("Reservation")), OWN_NONE);
    cr_expect_eq(own_kind_of(SLICE("x.claimguard.io/v1"), SLICE("Reservation")), OWN_NONE);
    cr_expect_eq(own_kind_of(SLICE("v1"), SLICE("Reservation")), OWN_NONE);
    cr_expect_eq(own_kind_of(SLICE(""), SLICE("")), OWN_NONE);
}

/* Programs that ask for no own kinds read the rest of the file: load_text is one. */
Test(own_object, who_does_not_ask_for_them_skips_them)
{
    load_text(&cluster, "apiVersion: claimguard.io/v1alpha1\nkind: Reservation\nmetadata: 7\n---\n"
                        "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n");
    cr_expect_eq(cluster.counts[KIND_NODE], 1);
}

static int stop(void *context, const struct object *object, struct error *err)
{
    (void)context;
    (void)object;
    return error_set(err, ERROR_INVALID, "unexpected");
}

static int ignore(void *context, const struct own_object *object, struct error *err)
{
    (void)object;
    (void)err;
    ++*(int *)context;
    return 0;
}

/* The place of one that is bad is that of the file, also in YAML. */
Test(own_object, a_bad_one_in_a_file_is_an_error_with_its_place)
{
    char path[] = "/tmp/claimguard-test-XXXXXX";
    struct source_report report;
    struct error err = {0};
    int count = 0;
    FILE *file = fdopen(mkstemp(path), "w");

    cr_assert(file != NULL);
    (void)fputs("apiVersion: claimguard.io/v1alpha1\nkind: UnservedResource\nmetadata: {name: x}\n"
                "---\napiVersion: claimguard.io/v1alpha1\nkind: Reservation\nmetadata: {name: a}\n",
                file);
    cr_assert_eq(fclose(file), 0);
    struct source source = {.path = path, .sink = stop, .own_sink = ignore, .context = &count};
    cr_expect_eq(source_read(&source, &report, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, ":5:1: "), "%s", err.message);
    cr_expect_eq(count, 1);
    cr_expect_eq(report.objects, 0);
    (void)remove(path);
}

/* ---- reservations ---- */

static const char pods[] =
    "apiVersion: v1\nkind: List\nitems:\n"
    "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: "
    "[ReadWriteOncePod]}}\n"
    "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: logs}}\n"
    "- {apiVersion: v1, kind: Pod, metadata: {name: a, uid: u}, spec: {volumes: "
    "[{persistentVolumeClaim: {claimName: data}}]}}\n"
    "- {apiVersion: v1, kind: Pod, metadata: {name: bound, uid: b}, spec: {nodeName: n, volumes: "
    "[{persistentVolumeClaim: {claimName: data}}]}}\n";

static struct reservation *restore(const char *name, const char *uid, bool binds, bool is_preemptor)
{
    struct slice claims[] = {SLICE("data"), SLICE("none")}, shared[] = {SLICE("logs")};
    struct own_object object = {.kind = OWN_RESERVATION,
                                .meta = {.ns = SLICE("default"), .name = slice_of(name)},
                                .pod_uid = slice_of(uid),
                                .node = SLICE("node-1"),
                                .priority = 5,
                                .claims = {.items = claims, .count = 2},
                                .shared = {.items = shared, .count = 1},
                                .binds = binds,
                                .is_of_preemptor = is_preemptor,
                                .expires_in_ms = 100};
    struct error err = {0};
    struct uid key;

    cr_assert_eq(reservation_restore(&cluster, &object, 1000 * NS_PER_MS, &err), 0);
    return uid_find(&cluster.names, slice_of(uid), &key) ? reservation_find(&cluster, &key) : NULL;
}

Test(own_object, a_reservation_is_restored)
{
    load_text(&cluster, pods);
    struct reservation *reservation = restore("a", "u", false, true);
    cr_assert_not_null(reservation);
    cr_expect_eq(reservation->priority, 5);
    cr_expect_eq(reservation->claim_count, 1, "the other one does not exist");
    cr_expect_eq(reservation->shared_count, 0, "it is not being bound");
    cr_expect_eq(reservation->expires_ns, 1100 * NS_PER_MS);
    cr_expect(reservation->is_of_preemptor);
    cr_expect_not(reservation_binds(reservation));
}

Test(own_object, one_of_a_bind_is_being_bound)
{
    load_text(&cluster, pods);
    struct reservation *reservation = restore("a", "u", true, false);
    cr_assert_not_null(reservation);
    cr_expect(reservation_binds(reservation));
    cr_expect_eq(reservation->shared_count, 1);
    cr_expect(slice_equal(name_slice(reservation->node), SLICE("node-1")));
    cr_expect_not(reservation->is_creation || reservation->is_of_preemptor);
}

Test(own_object, one_of_a_creation_has_the_claims_to_come)
{
    load_text(&cluster, pods);
    struct reservation *reservation = restore("new", "x", true, false);
    cr_assert_not_null(reservation);
    cr_expect(reservation->is_creation);
    cr_expect_eq(reservation->claim_count, 2);
}

Test(own_object, a_pod_that_is_bound_by_now_has_none)
{
    load_text(&cluster, pods);
    cr_expect_null(restore("bound", "b", true, false));
}
