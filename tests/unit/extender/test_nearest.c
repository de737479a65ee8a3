#include "config/base/text.h"

#include <criterion/criterion.h>

static const char *nearest_of(const char *typed)
{
    static const char *const words[] = {"serve", "snapshot", "dry-run", "who", "why", "audit"};
    struct nearest nearest = {.typed = typed};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        nearest_offer(&nearest, words[i]);
    return nearest.word == NULL ? "" : nearest.word;
}

Test(nearest, a_word_is_near_if_a_third_of_it_was_typed_wrongly)
{
    cr_expect_str_eq(nearest_of("dryrun"), "dry-run", "left out");
    cr_expect_str_eq(nearest_of("serrve"), "serve", "added");
    cr_expect_str_eq(nearest_of("audot"), "audit", "changed");
    cr_expect_str_eq(nearest_of("sevre"), "serve", "swapped: one edit");
    cr_expect_str_eq(nearest_of("sanpsoht"), "snapshot", "swapped twice");
    cr_expect_str_eq(nearest_of("adt"), "", "two of five are over a third");
    cr_expect_str_eq(nearest_of("wha"), "who", "of equally near ones the first by name");
    cr_expect_str_eq(nearest_of(""), "");
    cr_expect_str_eq(nearest_of("nothing-like-it"), "");
}

Test(nearest, a_beginning_is_near)
{
    cr_expect_str_eq(nearest_of("snap"), "snapshot");
    cr_expect_str_eq(nearest_of("sn"), "", "of three characters or more");
}

/* Words of a cluster come in any order. */
Test(nearest, the_order_of_words_does_not_show)
{
    static const char *const words[] = {"web-3", "web-1", "web-2"};

    for (size_t first = 0; first < 3; first++) {
        struct nearest nearest = {.typed = "web-0"};
        for (size_t i = 0; i < 3; i++)
            nearest_offer_copy(&nearest, slice_of(words[(first + i) % 3]));
        cr_expect_str_eq(nearest.word, "web-1");
    }
}

Test(nearest, words_are_bounded)
{
    char longest[NEAREST_BYTES_MAX + 2];
    struct nearest nearest = {.typed = longest};

    memset(longest, 'a', sizeof longest);
    longest[NEAREST_BYTES_MAX] = '\0';
    nearest_offer(&nearest, longest);
    cr_expect_eq(nearest.word, longest);
    nearest.word = NULL;
    longest[NEAREST_BYTES_MAX] = 'a';
    longest[NEAREST_BYTES_MAX + 1] = '\0';
    nearest_offer(&nearest, longest);
    cr_expect_null(nearest.word);
}

Test(nearest, a_hint_says_what_was_probably_meant)
{
    struct nearest nearest = {.typed = "pdo", .word = "pod"};
    char hint[NEAREST_HINT_BYTES];

    cr_expect_str_eq(nearest_hint(&nearest, "--", hint), "; did you mean --pod?");
    nearest.word = NULL;
    cr_expect_str_eq(nearest_hint(&nearest, "--", hint), "");
}
