/* Findings as JUnit XML: a testsuite for each rule, a testcase for each object with findings. */

#include "config/base/clock.h"
#include "config/base/text.h"
#include "extender/report/findings.h"

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

/* Appends what the buffer has, which is freed. */
static void put_made(struct buf *out, struct buf *text)
{
    put_xml(out, text->failed ? SLICE("?") : buf_slice(text));
    buf_dispose(text);
}

static void put_object(struct buf *out, const struct location *place)
{
    struct buf name;

    buf_init(&name, NAME_BYTES_MAX);
    finding_put_object(&name, place);
    put_made(out, &name);
}

static void put_place(struct buf *out, const struct location *place)
{
    struct buf text;

    buf_init(&text, NAME_BYTES_MAX);
    finding_put_place(&text, place, SLICE("-"));
    put_made(out, &text);
}

static void put_skipped(struct buf *out, const struct finding *finding)
{
    buf_put(out, SLICE("      <skipped message=\""));
    if (finding->ignored.len == 0)
        buf_printf(out, "%s: ", level_text(finding->level));
    put_xml(out, finding->ignored.len != 0 ? finding->ignored : finding->what);
    buf_put(out, SLICE("\"/>\n"));
}

static void put_failure(struct buf *out, const struct finding *finding)
{
    buf_printf(out, "      <failure type=\"%s\" message=\"", level_text(finding->level));
    put_xml(out, finding->what);
    buf_put(out, SLICE("\">"));
    put_place(out, &finding->place);
    buf_put(out, SLICE("\n"));
    put_xml(out, slice_of(finding->rule->title));
    if (finding->change.len != 0) {
        buf_put(out, SLICE("\nchange: "));
        put_xml(out, finding->change);
    }
    buf_put(out, SLICE("</failure>\n"));
}

static void put_case(struct buf *out, const struct findings *findings,
                     const struct finding *finding)
{
    buf_printf(out, "    <testcase classname=\"%s\" name=\"", finding->rule->code);
    put_object(out, &finding->place);
    if (finding->subject.len != 0) {
        buf_put(out, SLICE(": "));
        put_xml(out, finding->subject);
    }
    buf_put(out, SLICE("\" time=\"0\">\n"));
    if (finding_fails(findings, finding))
        put_failure(out, finding);
    else
        put_skipped(out, finding);
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

static struct suite count(const struct findings *findings, const struct rule *rule)
{
    struct suite suite = {0, 0, 0};

    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].rule != rule)
            continue;
        suite.cases++;
        if (finding_fails(findings, &findings->items[i]))
            suite.failures++;
        else
            suite.skipped++;
    }
    return suite;
}

/* Why the rule was not checked; NULL: it was. */
static const struct gap *find_gap(const struct findings *findings, size_t rule)
{
    for (size_t i = 0; i < findings->gaps.count; i++)
        if ((findings->gaps.items[i].rules & GAP_RULE(rule)) != 0)
            return &findings->gaps.items[i];
    return NULL;
}

/* gap: as find_gap. */
static void put_no_finding(struct buf *out, const struct rule *rule, const struct gap *gap)
{
    buf_printf(out, "    <testcase classname=\"%s\" name=\"no finding\" time=\"0\"", rule->code);
    if (gap == NULL) {
        buf_put(out, SLICE("/>\n"));
        return;
    }
    buf_put(out, SLICE(">\n      <skipped message=\""));
    put_xml(out, gap->text);
    buf_put(out, SLICE("\"/>\n    </testcase>\n"));
}

static void put_suite(struct buf *out, const struct findings *findings, size_t index,
                      struct slice time)
{
    const struct rule *rule = &findings->rules[index];
    struct suite suite = count(findings, rule);
    const struct gap *gap = suite.cases == 0 ? find_gap(findings, index) : NULL;

    buf_printf(out,
               "  <testsuite name=\"%s\" package=\"claimguard.%s\" id=\"%zu\" tests=\"%zu\" "
               "failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"0\" hostname=\"localhost\" "
               "timestamp=\"%.*s\">\n    <properties/>\n",
               rule->code, findings->command, index, suite.cases == 0 ? 1 : suite.cases,
               suite.failures, gap != NULL ? 1 : suite.skipped, SLICE_ARG(time));
    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].rule != rule)
            continue;
        put_case(out, findings, &findings->items[i]);
        if (out->len >= PIECE_BYTES)
            flush(out);
    }
    if (suite.cases == 0)
        put_no_finding(out, rule, gap);
    buf_put(out, SLICE("    <system-out/>\n    <system-err/>\n  </testsuite>\n"));
}

bool findings_junit(const struct findings *findings)
{
    struct buf time, out;

    buf_init(&out, JUNIT_BYTES_MAX);
    buf_init(&time, NAME_BYTES_MAX);
    buf_time(&time, now_ms(), false);
    struct slice when = {time.bytes, time.len < TIME_CHARACTERS ? time.len : TIME_CHARACTERS};
    buf_put(&out, SLICE("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"));
    for (size_t i = 0; findings->rules[i].code != NULL; i++)
        if ((findings->disabled & GAP_RULE(i)) == 0)
            put_suite(&out, findings, i, when);
    buf_put(&out, SLICE("</testsuites>\n"));
    flush(&out);
    bool ok = !out.failed && !time.failed && fflush(stdout) == 0;
    buf_dispose(&out);
    buf_dispose(&time);
    return ok;
}
