/* A report as JUnit XML: a testsuite for each rule, a testcase for each object with findings. */
#include <stdio.h>

#include "config/base/clock.h"
#include "config/base/utf8.h"
#include "extender/audit/audit_output.h"

enum {
    PIECE_BYTES = 64 * 1024,
    JUNIT_BYTES_MAX = 1 << 24,
    NAME_BYTES_MAX = 16 * 1024,
    TIME_CHARACTERS = 19 /* "2026-11-21T06:30:00" */
};

static bool is_character(struct slice c)
{
    /* U+FFFE and U+FFFF are none in XML 1.0 */
    return c.len != 3 || memcmp(c.ptr, "\xef\xbf", 2) != 0 || (unsigned char)c.ptr[2] < 0xbe;
}

/* Appends one character. */
static void put_character(struct buf *out, struct slice c)
{
    switch (c.ptr[0]) {
    case '<': buf_put(out, SLICE("&lt;")); break;
    case '>': buf_put(out, SLICE("&gt;")); break;
    case '&': buf_put(out, SLICE("&amp;")); break;
    case '"': buf_put(out, SLICE("&quot;")); break;
    default:
        if ((unsigned char)c.ptr[0] < 0x20 || !is_character(c))
            buf_put(out, SLICE("?"));
        else
            buf_put(out, c);
    }
}

/* Appends text, with '?' for what XML 1.0 does not allow. */
static void put_xml(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len;) {
        int length = utf8_length(text.ptr + i, text.len - i);
        if (length <= 0)
            buf_put(out, SLICE("?"));
        else
            put_character(out, (struct slice){text.ptr + i, (size_t)length});
        i += length <= 0 ? 1 : (size_t)length;
    }
}

/* Appends the value of an attribute that a function of audit_output.h writes. */
static void put_object(struct buf *out, const struct record *record)
{
    struct buf name;

    buf_init(&name, NAME_BYTES_MAX);
    audit_put_object(record, &name);
    put_xml(out, name.failed ? SLICE("?") : buf_slice(&name));
    buf_dispose(&name);
}

static void put_place(struct buf *out, const struct spot *spot)
{
    struct buf place;

    buf_init(&place, NAME_BYTES_MAX);
    audit_put_spot(spot, &place);
    put_xml(out, place.failed ? SLICE("?") : buf_slice(&place));
    buf_dispose(&place);
}

static void put_case(struct buf *out, const struct audit_finding *finding)
{
    bool is_ignored = finding->ignored.len != 0;

    buf_printf(out, "    <testcase classname=\"%s\" name=\"", finding->rule->code);
    put_object(out, finding->record);
    if (finding->subject.len != 0) {
        buf_put(out, SLICE(": "));
        put_xml(out, finding->subject);
    }
    buf_put(out, SLICE("\" time=\"0\">\n"));
    buf_printf(out,
               is_ignored ? "      <skipped message=\"" : "      <failure type=\"%s\" message=\"",
               level_text(finding->level));
    put_xml(out, is_ignored ? finding->ignored : finding->message);
    if (is_ignored) {
        buf_put(out, SLICE("\"/>\n"));
    } else {
        buf_put(out, SLICE("\">"));
        put_place(out, &finding->spot);
        buf_put(out, SLICE("\n"));
        put_xml(out, slice_of(finding->rule->title));
        buf_put(out, SLICE("</failure>\n"));
    }
    buf_put(out, SLICE("    </testcase>\n"));
}

/* Prints what the buffer has. */
static void flush(struct buf *out)
{
    out->failed |= fwrite(out->bytes, 1, out->len, stdout) != out->len;
    if (!out->failed)
        buf_reset(out, SIZE_MAX);
}

struct suite {
    size_t cases, failures, skipped;
};

static struct suite count(const struct audit_report *report, const struct rule *rule)
{
    struct suite suite = {0, 0, 0};

    for (size_t i = 0; i < report->count; i++) {
        if (report->findings[i].rule != rule)
            continue;
        suite.cases++;
        if (report->findings[i].ignored.len != 0)
            suite.skipped++;
        else
            suite.failures++;
    }
    return suite;
}

static void put_suite(struct buf *out, const struct audit_report *report, size_t index,
                      struct slice time)
{
    const struct rule *rule = &audit_rules[index];
    struct suite suite = count(report, rule);

    buf_printf(out,
               "  <testsuite name=\"%s\" package=\"claimguard.audit\" id=\"%zu\" tests=\"%zu\" "
               "failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"0\" hostname=\"localhost\" "
               "timestamp=\"%.*s\">\n    <properties/>\n",
               rule->code, index, suite.cases == 0 ? 1 : suite.cases, suite.failures, suite.skipped,
               SLICE_ARG(time));
    for (size_t i = 0; i < report->count; i++) {
        if (report->findings[i].rule != rule)
            continue;
        put_case(out, &report->findings[i]);
        if (out->len >= PIECE_BYTES)
            flush(out);
    }
    if (suite.cases == 0)
        buf_printf(out, "    <testcase classname=\"%s\" name=\"no finding\" time=\"0\"/>\n",
                   rule->code);
    buf_put(out, SLICE("    <system-out/>\n    <system-err/>\n  </testsuite>\n"));
}

bool audit_junit(const struct audit_report *report)
{
    struct buf time, out;

    buf_init(&out, JUNIT_BYTES_MAX);
    buf_init(&time, NAME_BYTES_MAX);
    buf_time(&time, now_ms(), false);
    struct slice when = {time.bytes, time.len < TIME_CHARACTERS ? time.len : TIME_CHARACTERS};
    buf_put(&out, SLICE("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"));
    for (size_t i = 0; i < RULE_COUNT; i++)
        if (!report->is_disabled[i])
            put_suite(&out, report, i, when);
    buf_put(&out, SLICE("</testsuites>\n"));
    flush(&out);
    bool ok = !out.failed && !time.failed && fflush(stdout) == 0;
    buf_dispose(&out);
    buf_dispose(&time);
    return ok;
}
