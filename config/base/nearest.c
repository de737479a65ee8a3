#include "config/base/nearest.h"

#include <stdio.h>
#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Row by row of the usual table; the last three rows are kept. */
static unsigned count_edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][NEAREST_BYTES_MAX + 1];

    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void nearest_offer(struct nearest *nearest, const char *word)
{
    size_t typed_len = strlen(nearest->typed), len = strlen(word);

    if (typed_len > NEAREST_BYTES_MAX || len > NEAREST_BYTES_MAX)
        return;
    unsigned edits = count_edits(nearest->typed, typed_len, word, len);
    bool is_beginning = typed_len >= 3 && strncmp(nearest->typed, word, typed_len) == 0;
    if (is_beginning && edits > NEAREST_EDITS_MAX)
        edits = NEAREST_EDITS_MAX;
    bool is_near = is_beginning || (edits <= NEAREST_EDITS_MAX && edits <= len / 3);
    if (is_near && (nearest->word == NULL || edits < nearest->edits)) {
        nearest->word = word;
        nearest->edits = edits;
    }
}

void nearest_offer_copy(struct nearest *nearest, struct slice word)
{
    char text[NEAREST_BYTES_MAX + 1];

    if (word.len > NEAREST_BYTES_MAX)
        return;
    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(word));
    nearest_offer(nearest, text);
    if (nearest->word == text) {
        (void)snprintf(nearest->copy, sizeof nearest->copy, "%s", text);
        nearest->word = nearest->copy;
    }
}

const char *nearest_hint(const struct nearest *nearest, const char *before,
                         char out[static NEAREST_HINT_BYTES])
{
    out[0] = '\0';
    if (nearest->word != NULL)
        (void)snprintf(out, NEAREST_HINT_BYTES, "; did you mean %s%s?", before, nearest->word);
    return out;
}
