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

static bool is_failure(const struct audit_report *report, const struct audit_finding *finding)
{
    return finding->ignored.len == 0 && finding->level >= report->fail_on;
}

static void put_case(struct buf *out, const struct audit_report *report,
                     const struct audit_finding *finding)
{
    bool is_skipped = !is_failure(report, finding);

    buf_printf(out, "    <testcase classname=\"%s\" name=\"", finding->rule->code);
    put_object(out, finding->record);
    if (finding->subject.len != 0) {
        buf_put(out, SLICE(": "));
        put_xml(out, finding->subject);
    }
    buf_put(out, SLICE("\" time=\"0\">\n"));
    buf_printf(out,
               is_skipped ? "      <skipped message=\"" : "      <failure type=\"%s\" message=\"",
               level_text(finding->level));
    if (is_skipped && finding->ignored.len == 0)
        buf_printf(out, "%s: ", level_text(finding->level));
    put_xml(out, finding->ignored.len != 0 ? finding->ignored : finding->message);
    if (is_skipped) {
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
        if (is_failure(report, &report->findings[i]))
            suite.failures++;
        else
            suite.skipped++;
    }
    return suite;
}

/* Whether the text names the rule, perhaps in "CG102 to CG106". */
static bool names_rule(struct slice text, const char *code)
{
    size_t len = strlen(code);
    static const char to[] = " to ";

    for (size_t i = 0; i + len <= text.len; i++) {
        const char *at = text.ptr + i, *last = at + len + sizeof to - 1;
        if (memcmp(at, code, 2) != 0)
            continue;
        if (memcmp(at, code, len) == 0)
            return true;
        if (last + len <= text.ptr + text.len && memcmp(at + len, to, sizeof to - 1) == 0 &&
            memcmp(at, code, len) <= 0 && memcmp(code, last, len) <= 0)
            return true;
    }
    return false;
}

/* What is said of a rule that was not checked; NULL: it was. */
static const struct slice *find_gap(const struct audit_report *report, const struct rule *rule)
{
    for (size_t i = 0; i < report->gap_count; i++)
        if (names_rule(report->gaps[i], rule->code))
            return &report->gaps[i];
    return NULL;
}

/* gap: as find_gap. */
static void put_no_finding(struct buf *out, const struct rule *rule, const struct slice *gap)
{
    buf_printf(out, "    <testcase classname=\"%s\" name=\"no finding\" time=\"0\"", rule->code);
    if (gap == NULL) {
        buf_put(out, SLICE("/>\n"));
        return;
    }
    buf_put(out, SLICE(">\n      <skipped message=\""));
    put_xml(out, *gap);
    buf_put(out, SLICE("\"/>\n    </testcase>\n"));
}

static void put_suite(struct buf *out, const struct audit_report *report, size_t index,
                      struct slice time)
{
    const struct rule *rule = &audit_rules[index];
    struct suite suite = count(report, rule);
    const struct slice *gap = suite.cases == 0 ? find_gap(report, rule) : NULL;

    buf_printf(out,
               "  <testsuite name=\"%s\" package=\"claimguard.audit\" id=\"%zu\" tests=\"%zu\" "
               "failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"0\" hostname=\"localhost\" "
               "timestamp=\"%.*s\">\n    <properties/>\n",
               rule->code, index, suite.cases == 0 ? 1 : suite.cases, suite.failures,
               gap != NULL ? 1 : suite.skipped, SLICE_ARG(time));
    for (size_t i = 0; i < report->count; i++) {
        if (report->findings[i].rule != rule)
            continue;
        put_case(out, report, &report->findings[i]);
        if (out->len >= PIECE_BYTES)
            flush(out);
    }
    if (suite.cases == 0)
        put_no_finding(out, rule, gap);
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
