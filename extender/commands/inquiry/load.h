/*
 * load: loads a snapshot into a cluster, and shows its progress if stderr is a terminal.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_INQUIRY_LOAD_H
#define EXTENDER_COMMANDS_INQUIRY_LOAD_H

#include "cache/cluster/cluster.h"
#include "cache/snapshot/source.h"

struct load_report {
    struct source_report source;
    bool lacks_classes;    /* pods name PriorityClasses that the snapshot does not have */
    unsigned listed;       /* bits 1 << kind: the snapshot has all objects that there were */
    bool is_of_claimguard; /* of /debug/snapshot: it has all reservations, and no owners */
};

/* The progress of reading, as a line on stderr if that is a terminal; _end removes it. The line of
 * a source is printed while it is read. Without one (NULL), the caller prints it when it is due. */
struct load_progress {
    bool is_shown;
    uint64_t started_ns;
    long shown_ms; /* when the line was last printed, since the start; 0: never */
};
void load_progress_begin(struct load_progress *progress, struct source *source);
bool load_progress_is_due(struct load_progress *progress);
/* The line says what is done with that path, from now on. */
void load_progress_say(struct load_progress *progress, const char *what, const char *path);
void load_progress_end(const struct load_progress *progress);

/* As text_sink of source.h. */
typedef int load_text_sink(void *context, const struct source_text *text,
                           const struct object *object, struct error *err);
struct load_texts {
    load_text_sink *sink;
    void *context;
};

/* texts: receives the text of each object; NULL: not wanted. A pod without a priority gets that of
 * its PriorityClass, as the API server would set it; if there is no such class,
 * pod->has_no_priority is true. Errors: as source_read; ERROR_INVALID if there is no object. The
 * cluster then contains the objects that were read before. */
int load_snapshot(struct cluster *cluster, const char *path, const struct load_texts *texts,
                  struct load_report *report, struct error *err);

enum { LOAD_WARNINGS_MAX = 7 };

/* The warning that pods have inline CSI volumes, and the snapshot has no CSIDriver; and whether it
 * is true of a pod with these mounts (NULL: they are not known). */
extern const char load_no_drivers[];
bool load_lacks_drivers(const struct cluster *cluster, const struct pod_mounts *mounts);

/* Gaps of the snapshot that can make verdicts wrong, as static strings. Returns their number. */
size_t load_warnings(const struct cluster *cluster, const struct load_report *report,
                     const char *warnings[LOAD_WARNINGS_MAX]);

#endif
