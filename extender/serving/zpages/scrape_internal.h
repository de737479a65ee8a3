/* scrape_internal: what scrape.c (the page) and scrape_families.c (its metrics) share. Only they
 * include this. */
#ifndef EXTENDER_SERVING_ZPAGES_SCRAPE_INTERNAL_H
#define EXTENDER_SERVING_ZPAGES_SCRAPE_INTERNAL_H

#include "extender/serving/zpages/zpages.h"

struct scrape {
    struct pieces pieces;
    struct state *state;
    bool is_open_metrics;
    unsigned family; /* index of the one that is being written, or of the next one */
    bool has_begun;  /* that family */
    bool has_more;   /* the family has more samples than it has written */
    char name[96];   /* of its samples, for a counter with _total */
    struct scan scan;
    unsigned left; /* records that this piece may still have */
    bool has_survey;
    struct survey survey;
    struct buf *out;
};

/* Where the numbers of a family are, and how they are read. */
enum number {
    NUMBER_COUNTER, /* atomic_uint_fast64_t, in struct state; one for each value of the label */
    NUMBER_GAUGE,   /* atomic_uint, in struct state */
    NUMBER_SIZE,    /* size_t, in struct state, under the lock */
    NUMBER_COUNT,   /* unsigned, in struct state, under the lock */
    NUMBER_OF_KIND, /* atomic_uint_fast64_t, in struct resource_status, for each watched resource */
    FLAG_OF_KIND,   /* the same: atomic_bool */
};

/* name: without "claimguard_", and without the _total of a counter, as in OpenMetrics. */
struct family {
    const char *name, *type, *help;
    void (*write)(struct scrape *scrape); /* writes samples, and sets has_more; NULL: numbers */
    enum number number;
    size_t offset;
    const char *label; /* NULL: there is one number */
    const char *const *values;
    unsigned count;
};

extern const struct family scrape_families[];
extern const unsigned scrape_family_count;

/* Write a sample of the family without a label; one with a label, with two; counters with a label;
 * a label alone, escaped. */
void scrape_put_count(const struct scrape *scrape, uint64_t value);
void scrape_put_for(const struct scrape *scrape, const char *label, const char *text,
                    uint64_t value);
void scrape_put_pair(const struct scrape *scrape, const char *const labels[2], const char *first,
                     const char *second, uint64_t value);
void scrape_put_counters(const struct scrape *scrape, const char *label, const char *const *texts,
                         const atomic_uint_fast64_t *counters, unsigned count);
void scrape_put_label(const struct scrape *scrape, const char *key, struct slice value);
void scrape_put_histogram(const struct scrape *scrape, const char *label, const char *text,
                          struct histogram *histogram);

#endif
