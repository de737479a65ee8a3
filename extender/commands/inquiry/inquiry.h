/*
 * inquiry: a cluster as commands read it: the cluster that verdicts read, and details (details.h)
 * of the objects that a command asks about. It comes from a snapshot, or from a live cluster, of
 * which each kind is listed once. Either way, the text of each object goes through one function.
 *
 *     struct inquiry_origin origin = {.snapshot = path};
 *     struct inquiry_wish wish = {.kinds = 1U << KIND_POD | 1U << KIND_CLAIM};
 *     struct inquiry inquiry;
 *     if (inquiry_open(&inquiry, &origin, err) == 0)
 *         (void)inquiry_read(&inquiry, &wish, err);
 *     inquiry_close(&inquiry);
 *
 * The order of objects does not matter. What the input does not have is a gap (inquiry_gap), which
 * a command reports. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_INQUIRY_H
#define EXTENDER_COMMANDS_INQUIRY_INQUIRY_H

#include "cache/client/kubeconfig.h"
#include "cache/watch/reflector.h"
#include "extender/commands/inquiry/details_store.h"
#include "extender/commands/inquiry/load.h"
#include "extender/commands/inquiry/workloads.h"
#include "extender/report/findings.h"

/* Where the cluster is: a snapshot, else as kubeconfig.h finds it. NULL: not given. */
struct inquiry_origin {
    const char *snapshot, *kubeconfig, *context;
};

/* What a command wants to know. */
struct inquiry_wish {
    unsigned kinds;      /* bits 1 << kind: listed of a live cluster; a snapshot is read as a whole.
                            text_sink gets also those that are not stored */
    struct slice ns;     /* of a live cluster, only objects of this namespace; empty: of all */
    unsigned optional;   /* bits 1 << kind: kinds that are a gap if they cannot be listed */
    unsigned everywhere; /* bits 1 << kind: kinds that are listed without ns */

    /* Whether the details of this pod, claim or node are kept. NULL: of none. */
    bool (*keeps)(void *context, const struct object *object);

    /* As text_sink of source.h. Of a live cluster, the path is NULL and the place {0, 0}. NULL:
     * texts are not wanted. */
    load_text_sink *text_sink;
    void *context;

    /* Of a live cluster: a list of that kind begins, or begins again: its objects come, all of
     * them. It has ended; is_whole: all of them could be decoded. It is a gap, because it was
     * answered with that error. NULL: not wanted. */
    void (*list_begins)(void *context, enum kind kind);
    void (*list_ends)(void *context, enum kind kind, bool is_whole);
    void (*list_is_forbidden)(void *context, const struct error *err);

    bool keeps_workloads; /* of a snapshot: those of workloads.h */
    bool reads_finished;  /* of a live cluster: pods that have finished, too */
    bool stores_nothing;  /* of a live cluster: only texts are wanted */
};

enum list_gap { GAP_NONE, GAP_FORBIDDEN, GAP_UNSERVED, GAP_FAILED };

/* Must not be moved. */
struct inquiry {
    struct cluster cluster;
    struct load_report report;            /* of a snapshot */
    const char *snapshot;                 /* its path; NULL: a live cluster */
    const char *default_ns;               /* of the context; "default" if it names none */
    int64_t now_ms;                       /* since 1970, of a live cluster; 0: not known */
    enum list_gap gaps[KIND_NAMED_COUNT]; /* of a live cluster */
    uint64_t left_out;                    /* objects of a live cluster that could not be decoded */
    size_t without_details;  /* objects whose details are lost, as in details_store.h */
    struct error unreadable; /* the first of them that cannot be read; code 0: none */
    struct details_store *details;
    struct kubeconfig *kubeconfig; /* NULL: a snapshot */
    struct workloads *workloads;
};

/* Ownership: inquiry_close, also after an error. */
int inquiry_open(struct inquiry *inquiry, const struct inquiry_origin *origin, struct error *err);
void inquiry_close(struct inquiry *inquiry);

/* Reads the cluster, and shows its progress if stderr is a terminal. Errors: as load_snapshot;
 * ERROR_UNAVAILABLE: pods or claims of a live cluster cannot be listed, or it does not answer. */
int inquiry_read(struct inquiry *inquiry, const struct inquiry_wish *wish, struct error *err);

/* For inquiry_follow: passes the text on, and keeps the details that are wanted. object: NULL: its
 * kind is not stored. Returns whether the object is used; negative: an error. */
int inquiry_take(struct inquiry *inquiry, const struct inquiry_wish *wish,
                 const struct source_text *text, const struct object *object, struct error *err);

/* Shows on stderr what makes an answer doubtful, but is no gap. */
void inquiry_show_notes(const struct inquiry *inquiry);

/* The text for details.h, valid until inquiry_forget_details; {NULL, 0}: not kept. */
struct slice inquiry_find_details(const struct inquiry *inquiry, enum kind kind, struct slice ns,
                                  struct slice name);

/* Frees the memory of texts that were found. They can be found again. */
void inquiry_forget_details(const struct inquiry *inquiry);

/* Why this input may lack objects of that kind, for people ("the snapshot has none"); NULL: it has
 * some, or a live cluster has none. */
const char *inquiry_gap(const struct inquiry *inquiry, enum kind kind);

/* Adds that text for each of these kinds that has one: "VolumeAttachments: ...". */
void inquiry_add_gaps(const struct inquiry *inquiry, struct gaps *gaps, const enum kind *kinds,
                      size_t count);

/* Adds the workloads that were asked for, and are not known; and objects whose details are lost. */
void inquiry_add_object_gaps(const struct inquiry *inquiry, struct gaps *gaps);

#define GAPS_HEADING     "\nNot known from this input:\n"
#define GAP_RESERVATIONS "reservations: only a running claimguard knows them (/debug/snapshot)"

/* Whether an object of that kind that is not in the input does not exist. */
static inline bool inquiry_knows(const struct inquiry *inquiry, enum kind kind)
{
    return inquiry->cluster.counts[kind] != 0 ||
           (inquiry->snapshot == NULL ? inquiry->gaps[kind] == GAP_NONE
                                      : (inquiry->report.listed & 1U << kind) != 0);
}

#endif
