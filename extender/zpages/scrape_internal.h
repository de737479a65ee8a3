/* What the files scrape*.c share. Only these files include this. */
#ifndef EXTENDER_ZPAGES_SCRAPE_INTERNAL_H
#define EXTENDER_ZPAGES_SCRAPE_INTERNAL_H

#include "extender/zpages/scan.h"
#include "extender/zpages/scrape.h"
#include "extender/zpages/survey.h"

struct scrape {
    struct pieces pieces;
    struct state *state;
    bool is_open_metrics;
    unsigned family; /* index of the one that is being written, or of the next one */
    bool has_begun;  /* that family */
    char name[96];   /* of its samples, for a counter with _total */
    struct scan scan;
    unsigned left; /* records that this piece may still have */
    bool has_survey;
    struct survey survey;
    struct buf *out;
};

/* Write a sample of the family without a label; one with a label; a label alone, escaped. */
void scrape_put_count(const struct scrape *scrape, uint64_t value);
void scrape_put_for(const struct scrape *scrape, const char *label, const char *text,
                    uint64_t value);
void scrape_put_label(const struct scrape *scrape, const char *key, struct slice value);

/* Each writes samples of a family. True if there are more. */
typedef bool scrape_samples(struct scrape *scrape);
scrape_samples scrape_deferred_mounts;
scrape_samples scrape_orphans;
scrape_samples scrape_violations;
scrape_samples scrape_reservations;
scrape_samples scrape_binds_in_doubt;
scrape_samples scrape_objects;
scrape_samples scrape_claims;
scrape_samples scrape_synced;
scrape_samples scrape_stalled;
scrape_samples scrape_skipped;
scrape_samples scrape_last_events;
scrape_samples scrape_list_durations;
scrape_samples scrape_restarts;
scrape_samples scrape_connections;
scrape_samples scrape_connections_max;
scrape_samples scrape_config_is_good;
scrape_samples scrape_config_loaded;
scrape_samples scrape_agreement;
scrape_samples scrape_given_up;
scrape_samples scrape_certificate_ends;
scrape_samples scrape_log_lines_dropped;

#endif
