#include "config/base/quantity.h"
#include "config/config_internal.h"

static void print_section(const struct option *options, const void *from, unsigned indent,
                          bool in_item, struct buf *out);

static void print_words(const struct option *option, unsigned bits, struct buf *out)
{
    const char *separator = "";

    buf_put(out, SLICE("["));
    for (unsigned i = 0; option->words[i] != NULL; i++) {
        if ((bits >> i & 1U) == 0)
            continue;
        buf_printf(out, "%s%s", separator, option->words[i]);
        separator = ", ";
    }
    buf_put(out, SLICE("]"));
}

static void print_strings(const struct slice *const *strings, struct buf *out)
{
    size_t count = *(const size_t *)(const void *)(strings + 1);

    buf_put(out, SLICE("["));
    for (size_t i = 0; i < count; i++) {
        buf_put(out, i == 0 ? SLICE("") : SLICE(", "));
        buf_json(out, (*strings)[i]);
    }
    buf_put(out, SLICE("]"));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void print_entries(const struct option *option, struct defer_entry *const *entries,
                          unsigned indent, struct buf *out)
{
    size_t count = *(const size_t *)(const void *)(entries + 1);

    buf_put(out, count == 0 ? SLICE(" []\n") : SLICE("\n"));
    for (size_t i = 0; i < count; i++)
        print_section(option->members, &(*entries)[i], indent + 2, true, out);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void print_value(const struct option *option, const void *from, unsigned indent,
                        struct buf *out)
{
    const void *at = (const char *)from + option->offset;
    char text[QUANTITY_TEXT_BYTES];

    if (option->type == OPTION_SECTION) {
        buf_put(out, SLICE("\n"));
        print_section(option->members, from, indent + 2, false, out);
        return;
    }
    if (option->type == OPTION_ENTRIES) {
        print_entries(option, at, indent, out);
        return;
    }
    buf_put(out, SLICE(" "));
    switch (option->type) {
    case OPTION_STRING: buf_json(out, *(const struct slice *)at); break;
    case OPTION_BOOLEAN: buf_printf(out, "%s", *(const bool *)at ? "true" : "false"); break;
    case OPTION_BYTES:
        buf_printf(out, "%s", quantity_bytes_text(*(const int64_t *)at, text));
        break;
    case OPTION_DURATION:
        buf_printf(out, "%s", quantity_duration_text(*(const int64_t *)at, text));
        break;
    case OPTION_WORD: buf_printf(out, "%s", option->words[*(const int *)at]); break;
    case OPTION_WORDS: print_words(option, *(const unsigned *)at, out); break;
    default: print_strings(at, out); break;
    }
    buf_put(out, SLICE("\n"));
}

/* A string or a list that the file left out is not printed, since no value means "none". */
static bool is_printed(const struct option *option, const void *from)
{
    const void *at = (const char *)from + option->offset;

    if (option->type == OPTION_STRING)
        return ((const struct slice *)at)->len != 0;
    if (option->type == OPTION_STRINGS)
        return *(const void *const *)at != NULL;
    if (option->type != OPTION_SECTION)
        return true;
    for (const struct option *member = option->members; member->key != NULL; member++)
        if (member->type != OPTION_STRING ||
            ((const struct slice *)(const void *)((const char *)from + member->offset))->len != 0)
            return true;
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void print_section(const struct option *options, const void *from, unsigned indent,
                          bool in_item, struct buf *out)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        if (!is_printed(option, from))
            continue;
        buf_printf(out, "%*s%s:", (int)indent, in_item ? "- " : "", option->key);
        in_item = false;
        print_value(option, from, indent, out);
    }
}

void config_print(const struct config *config, struct buf *out)
{
    print_section(file_options, config, 0, false, out);
}
