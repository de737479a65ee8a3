/* A snapshot has each field that a decoder reads: of each kind, an object with all fields of all
 * tables is written as it is. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "cache/objects/details.h"
#include "cache/objects/objects_internal.h"
#include "extender/commands/audit/reading.h"
#include "support/every_field.h"

static void expect_all_fields(enum kind kind)
{
    const struct pull_table more = reading_table(kind);
    const struct pull_table decoders[] = {object_tables(kind)->core, details_table(kind), more};
    json_t *whole =
        json_pack("{s:s, s:s}", "apiVersion", kind_api_version(kind), "kind", kind_text(kind));
    struct error err = {0};
    struct buf out;

    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        json_t *part = every_field(decoders[i], "x");
        every_field_merge(whole, part);
        json_decref(part);
    }
    char *text = json_dumps(whole, JSON_SORT_KEYS);
    buf_init(&out, 1 << 20);
    cr_assert_eq(object_project(slice_of(text), kind, &more, &out, &err), 0, "%s", err.message);
    json_t *projected = json_loadb(out.bytes, out.len, 0, NULL);
    char *got = json_dumps(projected, JSON_SORT_KEYS);
    cr_expect_str_eq(got, text);
    free(got);
    free(text);
    json_decref(projected);
    json_decref(whole);
    buf_dispose(&out);
}

Test(snapshot_fields, of_each_kind_all_fields_that_a_decoder_reads_are_there)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        expect_all_fields((enum kind)kind);
}

Test(snapshot_fields, what_nobody_reads_is_not_there)
{
    static const char pod[] =
        "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"a\":\"secret\"}},\"spec\":{"
        "\"nodeSelector\":{\"disk\":\"fast\"},\"containers\":[{\"image\":\"secret\",\"args\":["
        "\"secret\"],\"env\":[{\"name\":\"A\",\"value\":\"secret\"}],\"resources\":{\"limits\":{"
        "\"memory\":\"secret\",\"claimguard.io/claims\":\"1\"}}}],\"affinity\":{\"nodeAffinity\":{"
        "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":\"secret\"}]}},"
        "\"volumes\":[{\"name\":\"v\",\"iscsi\":{\"iqn\":\"secret\"}}]}}";
    const struct pull_table more = reading_table(KIND_POD);
    struct error err = {0};
    struct buf out;

    buf_init(&out, 1 << 20);
    cr_assert_eq(object_project(slice_of(pod), KIND_POD, &more, &out, &err), 0, "%s", err.message);
    cr_expect_null(strstr(buf_text(&out), "secret"), "%s", buf_text(&out));
    cr_expect_not_null(strstr(buf_text(&out), "\"nodeSelector\":{\"disk\":\"fast\"}"));
    cr_expect_not_null(strstr(buf_text(&out), "\"claimguard.io/claims\":\"1\""));
    cr_expect_not_null(strstr(buf_text(&out), "\"iscsi\":{}"));
    buf_dispose(&out);
}
