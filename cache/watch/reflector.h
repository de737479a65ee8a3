/*
 * reflector: keeps one resource of the cluster as the API server has it, by list and watch, as
 * client-go's Reflector does (https://kubernetes.io/docs/reference/using-api/api-concepts/).
 * It is a state machine without a socket or a clock: the owner makes the requests that it asks for,
 * hands it the bytes as they arrive, and tells it how each ended and what time it is. Objects are
 * handed on one by one, as they stream; nothing larger than one object is kept.
 *
 *     list, streamed (sendInitialEvents)  --end of initial events-->  watch, in the same answer
 *     list, in pages (where the server cannot)  --last page-->  watch from the list's version
 *     watch ends, is cut or falls silent        -->  probe, then watch from the last version seen
 *     version too old (410), continue expired   -->  list again
 *     an older version than was seen before: the server's history is another one (a restored
 *     backup)                                   -->  list again, and what it says overrides
 *     refused three times at one version        -->  list again, in pages
 *
 * Only what was asked for counts: a list of the right kind, with a version and `items` (kind and
 * metadata stand before them, as Go writes lists), objects of the right kind, a bookmark with a
 * version. Anything else is no answer, and nothing that is known changes by it.
 *
 * An object that cannot be read is passed over, counted and logged, and the watch goes on behind
 * it: nobody who may create objects may stop the cache with one. What was known of it stays, and a
 * list that has it does not take it for gone; its deletion counts if namespace, name and UID can be
 * read. A line that is no JSON is asked for again first; the third time it is passed over, if type,
 * name and version stand in it, else the list is read anew.
 *
 * A resource is stalled when the API server has answered for STALLED_MS and nothing came of it: the
 * cache gets old while the cluster goes on, so /readyz fails. While the API server is away or
 * overloaded (no connection, 429, 502 and up) it is not: nobody can be bound then, what is known
 * stays true, and a claimguard that is not ready, or restarts, would only be late afterwards.
 *
 * The probe asks for one object not older than the last version: an API server whose history ends
 * before that says so, while a watch from there would be silent until it catches up, and miss all
 * that happened until then. Only a list of that kind, of that version or a later one, passes it.
 *
 * A watch is asked for WATCH_SECONDS at most, and given up SILENT_MS later: so a connection that
 * fell silent without closing is found within a minute, whatever is in between.
 *
 * Threads: one; only *status is read by others.
 */
#ifndef CACHE_WATCH_REFLECTOR_H
#define CACHE_WATCH_REFLECTOR_H

#include <stdatomic.h>

#include "cache/json/json_documents.h"
#include "cache/objects/objects.h"
#include "config/base/buf.h"

enum {
    WATCH_SECONDS = 45,           /* some of it is cut off at random, so that not all end at once */
    SILENT_MS = 8000,             /* that a watch may outlive what it was asked for */
    QUIET_MS_MIN = 10000,         /* one that brings nothing, and ends well before, has not begun */
    LIST_SILENT_MS = 20000,       /* between two pieces of a list */
    STREAMED_LIST_SECONDS = 3600, /* that the server may take for a streamed list */
    PAGE_OBJECTS = 500,
    RETRY_MS_MIN = 200,
    RETRY_MS_MAX = 10000,
    RETRY_AFTER_MS_MAX = 60000,  /* longer than this is not waited, whatever the server says */
    ABSENT_RETRY_MS = 600000,    /* until a resource that is not served is asked for again */
    OBJECT_BYTES_MAX = 32 << 20, /* the API server takes none over a few MiB */
    RELISTS_AT_ONCE_MAX = 3,     /* then it is waited before a list starts anew */
    RELIST_MS_MAX = 60000,       /* between lists, where no watch works */
    REFUSED_MAX = 3,             /* at one version; then the list is read anew */
    STALLED_MS = 20000,
};

/* Why a list or watch was started again: the label of watch_restarts_total. */
enum restart {
    RESTART_TIMEOUT,       /* a watch ended when it should */
    RESTART_EXPIRED,       /* 410: the version, or the continue token, is too old */
    RESTART_CONNECTION,    /* cut off, or not reached */
    RESTART_SILENT,        /* cancelled: nothing came for too long */
    RESTART_THROTTLED,     /* 429 */
    RESTART_UNAUTHORIZED,  /* 401 */
    RESTART_FORBIDDEN,     /* 403 */
    RESTART_SERVER_ERROR,  /* 5xx, other statuses, ERROR events */
    RESTART_MALFORMED,     /* what came cannot be read */
    RESTART_OLDER_HISTORY, /* versions went back */
    RESTART_FALLBACK,      /* the server cannot stream lists: pages from now on */
    RESTART_COUNT,
};

const char *restart_text(enum restart restart);

/* What anyone may know of a resource. */
struct resource_status {
    atomic_bool is_synced;             /* all of it was read once, or it is not served */
    atomic_bool is_absent;             /* this API server does not serve it */
    atomic_bool is_stalled;            /* answers come, and what is known gets old */
    atomic_int_fast64_t last_event_ms; /* the last whole event or page, since 1970; 0: never */
    atomic_int_fast64_t list_ns;       /* what the last whole list took; 0: there was none */
    atomic_uint_fast64_t restarts[RESTART_COUNT];
    atomic_uint_fast64_t early_ends; /* watches that the API server ended well, and before their
                                        time: it shuts down */
    atomic_uint_fast64_t skipped;    /* objects that could not be decoded */
};

enum watch_change { CHANGE_PUT, CHANGE_DELETE };

/* Who takes the objects. The functions are called within reflector_take and reflector_end. */
struct reflector_sink {
    void *context;
    /* A whole list begins: what it does not name is gone at its end. overrides: what it says counts
     * even where something newer is known. May come again before the end: the list starts anew. */
    void (*begin)(void *context, enum kind kind, bool overrides);
    void (*end)(void *context, enum kind kind, uint64_t version);
    /* One object, gone when this returns. text: its JSON. Negative: nothing can be kept. */
    int (*take)(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err);
    /* The list names this object, and it cannot be read: it is not gone. name empty: nobody knows
     * which one it is, so that none is gone. */
    void (*keep)(void *context, enum kind kind, struct slice ns, struct slice name);
};

enum reflector_phase { PHASE_STREAM, PHASE_PAGES, PHASE_PROBE, PHASE_WATCH };

struct reflector {
    enum kind kind;
    enum reflector_phase phase;
    struct reflector_sink sink;
    struct resource_status *status;
    bool is_list_only;   /* stops when the list is whole: for a snapshot */
    bool is_done;        /* it has stopped */
    bool can_stream;     /* lists; as far as we know */
    bool overrides;      /* the next list is of another history */
    bool has_begun;      /* the sink was told that this list begins */
    bool is_established; /* this answer brought something good */
    bool is_renewal;     /* deadline_ns is when a watch is renewed, not when it is too silent */
    char version[32];    /* the last that was seen, as the server wrote it */
    uint64_t number;     /* the same as a number; 0: it is none */
    int failure;         /* enum restart: why this answer was given up; -1: it was not */
    bool restarts_list;  /* ... and the list has to start anew */
    int64_t retry_after_ms;
    unsigned failures; /* in a row */
    unsigned relists;  /* lists that had to start anew, since a watch last worked */
    unsigned refusals; /* answers of which nothing came, since the version last moved */
    uint64_t refused_since_ns;
    bool has_moved; /* ... in this answer */
    uint64_t news;  /* whole events and pages so far */
    bool has_read;  /* the last bytes completed something: a line, an item, ... */
    uint32_t random;
    uint64_t now_ns;          /* when the last bytes came */
    uint64_t log_skipped_ns;  /* when an object that is passed over may be logged again */
    uint64_t due_ns;          /* when the next request is to be made */
    uint64_t deadline_ns;     /* when the present one is given up; 0: there is none */
    uint64_t started_ns;      /* the present request */
    uint64_t list_started_ns; /* when the list was asked for, from its start */
    bool is_page_whole;
    struct buf window; /* bytes that are not yet read */
    size_t scanned;    /* of it, known to hold no end of line */
    struct document document;
    struct list_meta meta; /* of the page that is being read */
    char page[4096];       /* the continue token of that page; empty: it is the first */
    struct arena arena;
};

void reflector_init(struct reflector *reflector, enum kind kind, const struct reflector_sink *sink,
                    struct resource_status *status, uint32_t seed);
void reflector_dispose(struct reflector *reflector);

/* Puts the path and query of the request to make now. */
void reflector_request(struct reflector *reflector, uint64_t now_ns, struct buf *path);

/* A piece of the answer. False: give the answer up, then call reflector_end. */
bool reflector_take(struct reflector *reflector, unsigned status, struct slice bytes,
                    uint64_t now_ns);

/* The answer is over. status 0: there was none; is_cut: it is not whole; is_silent: it was
 * cancelled after deadline_ns. Sets due_ns. error: what happened, for the log. */
struct reflector_ending {
    unsigned status;
    bool is_cut, is_silent;
    int64_t retry_after_ms;
    const char *error;
};
void reflector_end(struct reflector *reflector, const struct reflector_ending *ending,
                   uint64_t now_ns);

#endif
