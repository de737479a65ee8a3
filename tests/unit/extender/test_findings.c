/* Answers that are read out of structs: as fields; gaps and findings. */
#include <criterion/criterion.h>
#include <string.h>

#include "extender/report/findings.h"

static struct arena arena;

static void begin(void)
{
    arena_init(&arena, 1 << 20);
}

static void end(void)
{
    arena_dispose(&arena);
}

TestSuite(findings, .init = begin, .fini = end);

/* A text of each kind of character, and what is no UTF-8. */
static void put_all(struct fields *out)
{
    fields_open(out, NULL, '{');
    fields_text(out, "text", SLICE("a\"\\\b\x1f\xc3\xa9\xff"));
    fields_text_if(out, "empty", SLICE(""));
    fields_open(out, "list", '[');
    fields_number(out, NULL, -1);
    fields_flag(out, NULL, true);
    fields_close(out);
    fields_open(out, "none", '[');
}

Test(fields, a_buffer_has_compact_json)
{
    struct fields out;
    struct buf text;

    buf_init(&text, 1024);
    fields_begin_compact(&out, &text);
    put_all(&out);
    cr_expect(fields_end(&out), "it closes what is open");
    cr_expect_str_eq(buf_text(&text), "{\"text\":\"a\\\"\\\\\\b\\u001F\xc3\xa9\xef\xbf\xbd\","
                                      "\"list\":[-1,true],\"none\":[]}");
    buf_dispose(&text);
}

/* What is written to a file in that format; static. */
static const char *write(enum output_format format)
{
    static char text[1024];
    FILE *file = fmemopen(text, sizeof text, "w");
    struct fields out;

    cr_assert_not_null(file);
    fields_begin(&out, format, file);
    fields_open_results(&out);
    put_all(&out);
    cr_expect(fields_end(&out));
    (void)fclose(file);
    return text;
}

Test(fields, a_file_has_lines_of_json_or_yaml)
{
    cr_expect_str_eq(write(OUTPUT_JSON),
                     "[\n{\n  \"text\": \"a\\\"\\\\\\b\\u001F\xc3\xa9\xef\xbf\xbd\",\n"
                     "  \"list\": [\n    -1,\n    true\n  ],\n  \"none\": []\n}\n]\n");
    cr_expect_str_eq(write(OUTPUT_YAML), "- text: \"a\\\"\\\\\\b\\x1F\xc3\xa9\xef\xbf\xbd\"\n"
                                         "  list:\n  - -1\n  - true\n  none: []\n");
}

Test(findings, gaps_are_a_list_of_texts_and_know_their_rules)
{
    struct gaps gaps = {.arena = &arena};
    struct fields out;
    struct buf text;

    gaps_add(&gaps, GAP_RULES(2, 4), "no %s", "CSINodes");
    cr_expect_eq(gaps.items[0].rules, 0x1c);
    buf_init(&text, 1024);
    fields_begin_compact(&out, &text);
    fields_open(&out, NULL, '{');
    gaps_put(&out, "notKnown", &gaps);
    cr_expect(fields_end(&out));
    cr_expect_str_eq(buf_text(&text), "{\"notKnown\":[\"no CSINodes\"]}");
    buf_dispose(&text);
}

/* A text that is longer than what is kept, and where it is cut inside a character. */
Test(findings, a_long_text_of_a_finding_is_cut_before_a_character)
{
    static const struct rule rules[] = {{.code = "CG001"}, {.code = NULL}};
    static const size_t before[] = {1021, 1022, 1023}; /* bytes in front of a character of two */
    static const size_t kept[] = {1023, 1022, 1023};
    struct findings findings;

    findings_init(&findings, rules, "audit", &arena);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const struct finding *finding = finding_add(&findings, 0, (struct location){.line = 1}, "",
                                                    "%0*d\xc3\xa9 is too long", (int)before[i], 0);
        cr_assert_not_null(finding);
        cr_expect_eq(finding->what.len, kept[i], "%zu", before[i]);
    }
    findings_dispose(&findings);
}
