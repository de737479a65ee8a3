/*
 * reflector: keeps one resource of the cluster equal to the API server, by list and watch, as
 * client-go's Reflector does (https://kubernetes.io/docs/reference/using-api/api-concepts/).
 * It is a state machine without a socket or a clock. Its owner sends the requests that it asks for,
 * passes it the bytes of the answers, and reports how each answer ended, and the time. The
 * reflector passes objects to its sink one by one, so it never stores more than one object.
 *
 *     list, streamed (sendInitialEvents)  --end of initial events-->  watch, in the same answer
 *     list, in pages (if the server cannot stream)  --last page-->  watch from the list's version
 *     watch ends, is cut off or silent          -->  probe, then watch from the last version
 *     version too old (410), continue token expired  -->  new list
 *     an older version than one seen before: the server has another history (a restored backup)
 *                                               -->  new list, which overrides what is known
 *     refused three times at one version        -->  new list, in pages
 *
 * Only valid answers count: a list of the right kind with a version and `items` (kind and metadata
 * come before the items, as Go writes lists), objects of the right kind, bookmarks with a version.
 * Any other answer changes nothing. A list whose continue token repeats, or with over PAGES_MAX
 * pages, would never end; it is not valid either.
 *
 * An object that cannot be decoded is skipped, counted and logged, and the watch continues, so that
 * no user can stop the cache by creating such an object. Its record stays, and a list that names it
 * does not remove it. Its deletion counts if namespace, name and UID can be read. A line that is
 * not JSON is requested again; the third time it is skipped if it identifies its object, else a new
 * list is read.
 *
 * A resource is stalled if the API server has answered for STALLED_MS, but the version did not
 * advance. Then the cache gets old while the cluster changes, so /readyz fails. A resource is not
 * stalled while the API server is away or overloaded (no connection, 429, 502 and above): no pod
 * can be bound then, the cache stays true, and a restart would only cost time.
 *
 * The probe requests one object at the last version or a later one. An API server whose history
 * ends before that version answers so at once, while a watch from that version would be silent
 * until the history reaches it, and would miss everything before. Only a list of that kind, at
 * that version or a later one, passes the probe.
 *
 * A watch is requested for WATCH_SECONDS at most, and cancelled SILENT_MS later. So a connection
 * that is dead but not closed is found within a minute.
 *
 * Ownership: the sink and the status are borrowed. Threads: one; other threads may read *status.
 */
#ifndef CACHE_WATCH_REFLECTOR_H
#define CACHE_WATCH_REFLECTOR_H

#include <stdatomic.h>

#include "cache/json/json_documents.h"
#include "cache/objects/objects.h"
#include "config/base/buf.h"

enum {
    WATCH_SECONDS =
        45,           /* up to a quarter less, at random, so that watches end at different times */
    SILENT_MS = 8000, /* how much longer than requested a watch may last */
    QUIET_MS_MIN = 10000,         /* a watch without events that ends earlier was useless */
    LIST_SILENT_MS = 20000,       /* between two parts of a list */
    STREAMED_LIST_SECONDS = 3600, /* a streamed list may last as long */
    PAGE_OBJECTS = 500,
    PAGES_MAX = 20000, /* of one list: ten million objects */
    RETRY_MS_MIN = 200,
    RETRY_MS_MAX = 10000,
    RETRY_AFTER_MS_MAX = 60000,  /* the longest Retry-After that is followed */
    ABSENT_RETRY_MS = 600000,    /* until a resource that is not served is tried again */
    OBJECT_BYTES_MAX = 32 << 20, /* the API server accepts a few MiB at most */
    RELISTS_AT_ONCE_MAX = 3,     /* after more new lists in a row, a pause comes first */
    RELIST_MS_MAX = 60000,       /* the longest pause between lists if no watch works */
    REFUSED_MAX = 3,             /* at one version; then a new list is read */
    STALLED_MS = 20000,
};

/* Why a list or watch was restarted: the label `reason` of watch_restarts_total. */
enum restart {
    RESTART_TIMEOUT,       /* the watch ended as requested */
    RESTART_EXPIRED,       /* 410: the version, or the continue token, is too old */
    RESTART_CONNECTION,    /* cut off, or no connection */
    RESTART_SILENT,        /* cancelled: no bytes for too long */
    RESTART_THROTTLED,     /* 429 */
    RESTART_UNAUTHORIZED,  /* 401 */
    RESTART_FORBIDDEN,     /* 403 */
    RESTART_SERVER_ERROR,  /* 5xx, other statuses, ERROR events */
    RESTART_MALFORMED,     /* the answer is not valid */
    RESTART_OLDER_HISTORY, /* an older version than before */
    RESTART_FALLBACK,      /* the server cannot stream lists: use pages from now on */
    RESTART_COUNT,
};

const char *restart_text(enum restart restart);

/* The state of a resource, for all threads. */
struct resource_status {
    atomic_bool is_synced;  /* a complete list was read, or it is not served */
    atomic_bool is_absent;  /* this API server does not serve it */
    atomic_bool is_stalled; /* answers arrive, but the version does not advance */
    atomic_int_fast64_t
        last_event_ms; /* when the last complete event or page came, since 1970; 0: never */
    atomic_int_fast64_t list_ns; /* how long the last complete list took; 0: there was none */
    atomic_uint_fast64_t restarts[RESTART_COUNT];
    atomic_uint_fast64_t
        early_ends; /* watches that the API server ended properly, but too early: it shut down */
    atomic_uint_fast64_t skipped; /* objects that could not be decoded */
};

enum watch_change { CHANGE_PUT, CHANGE_DELETE };

/* Receives the objects. Its functions are called within reflector_take and reflector_end. */
struct reflector_sink {
    void *context;
    /* A complete list begins, which was requested at asked_ns; it may begin again before its end.
     * At its end, all objects that it did not name are gone. overrides: it counts even against
     * newer objects. */
    void (*begin)(void *context, enum kind kind, bool overrides, uint64_t asked_ns);
    void (*end)(void *context, enum kind kind, uint64_t version);
    /* One object, valid until this returns. text: its JSON. Negative: no memory. */
    int (*take)(void *context, enum watch_change change, const struct object *object,
                struct slice text, struct error *err);
    /* The list names this object, but it cannot be decoded: it is not gone. With an empty name the
     * object is unknown, so no object is gone. */
    void (*keep)(void *context, enum kind kind, struct slice ns, struct slice name);
    /* The API server does not serve the kind. Called again at each new try. */
    void (*unserved)(void *context, enum kind kind);
};

enum reflector_phase { PHASE_STREAM, PHASE_PAGES, PHASE_PROBE, PHASE_WATCH };

struct reflector {
    enum kind kind; /* of one that is not stored, sink.take gets an object without fields, and the
                       text; is_list_only */
    enum reflector_phase phase;
    struct reflector_sink sink;
    struct resource_status *status;
    struct slice ns;     /* the only namespace; empty: all */
    bool reads_finished; /* pods that have finished, too */
    bool is_list_only;   /* stops when the list is complete: for a snapshot */
    bool is_done;        /* it has stopped */
    bool can_stream;     /* the server can stream lists, as far as known */
    bool overrides;      /* the next list is from another history */
    bool has_begun;      /* sink.begin was called for this list */
    bool is_established; /* this answer had a valid event or page */
    bool is_renewal;     /* at deadline_ns the watch is renewed; it is not silent */
    char version[32];    /* the last one, as the server wrote it */
    uint64_t number;     /* the same as a number; 0: it is not a number */
    int failure;         /* enum restart: why reflector_give_up was called; -1: it was not */
    bool restarts_list;  /* ... and a new list is needed */
    int64_t retry_after_ms;
    unsigned failures;       /* in a row */
    struct error sink_error; /* why sink.take failed last */
    unsigned relists;        /* new lists that were needed since a watch last worked */
    unsigned refusals;       /* useless answers since the version last advanced */
    uint64_t refused_since_ns;
    bool has_advanced; /* the version advanced in this answer */
    uint64_t news;     /* complete events and pages so far */
    bool has_read;     /* the last bytes completed a line, an item, ... */
    uint32_t random;
    uint64_t now_ns;          /* when the last bytes arrived */
    uint64_t log_skipped_ns;  /* when a skipped object may be logged again */
    uint64_t due_ns;          /* when the next request is due */
    uint64_t deadline_ns;     /* when the present request is cancelled; 0: none */
    uint64_t started_ns;      /* the present request */
    uint64_t list_started_ns; /* when the list was requested */
    bool is_page_whole;
    struct buf window; /* bytes that are not yet read */
    size_t scanned;    /* bytes of it that were searched for an end of line */
    struct document document;
    struct list_meta meta; /* of the page that is being read */
    unsigned pages;        /* of this list */
    char page[4096];       /* the continue token of that page; empty: the first page */
    struct arena arena;
};

/* The resource that it reads: "pods". */
static inline const char *reflector_resource(const struct reflector *reflector)
{
    return kind_resource(reflector->kind);
}

void reflector_init(struct reflector *reflector, enum kind kind, const struct reflector_sink *sink,
                    struct resource_status *status, uint32_t seed);
void reflector_dispose(struct reflector *reflector);

/* Starts a request: writes its path and query. */
void reflector_request(struct reflector *reflector, uint64_t now_ns, struct buf *path);

/* Reads a part of the answer. False: cancel the request, then call reflector_end. */
bool reflector_take(struct reflector *reflector, unsigned status, struct slice bytes,
                    uint64_t now_ns);

/* The end of an answer. status 0: there was no answer; is_cut: it is not complete; is_silent: it
 * was cancelled after deadline_ns; error: a text for the log. */
struct reflector_ending {
    unsigned status;
    bool is_cut, is_silent;
    int64_t retry_after_ms;
    const char *error;
};

/* Sets due_ns, when the next request is due. */
void reflector_end(struct reflector *reflector, const struct reflector_ending *ending,
                   uint64_t now_ns);

#endif
